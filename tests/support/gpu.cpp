#include "support/gpu.hpp"

namespace troupe::test {

const std::shared_ptr<const vulkan::instance>& gpus() {
  static const auto all = std::make_shared<const vulkan::instance>(vulkan::instance_options{.validation = true});
  return all;
}

std::unique_ptr<device> open_gpu(const vulkan::vulkan_device_options& options, const std::string& name) {
  return vulkan::make_vulkan_device(gpus(), 0, name, options);
}

std::string new_gpu_messages() {
  static size_t seen = 0;
  const std::vector<std::string> all = gpus()->messages();
  std::string text;
  for (; seen < all.size(); ++seen)
    text += all[seen] + "\n";
  return text;
}

} // namespace troupe::test
