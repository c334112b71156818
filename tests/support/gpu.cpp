#include "support/gpu.hpp"

namespace troupe::test {

namespace {

struct watched_gpus {
  std::shared_ptr<const vulkan::instance> all;
  bool validated = true;

  watched_gpus() {
    try {
      all = std::make_shared<const vulkan::instance>(vulkan::instance_options{.validation = true});
    } catch (const error&) { // the layer is missing: the machine of a GPU need not have it
      validated = false;
      all = std::make_shared<const vulkan::instance>();
    }
  }
};

const watched_gpus& watched() {
  // Never destroyed: at the program's end the layer's own statics may be gone (seen on Debian 13).
  static const watched_gpus& one = *new watched_gpus;
  return one;
}

} // namespace

const std::shared_ptr<const vulkan::instance>& gpus() {
  return watched().all;
}

bool gpus_are_validated() {
  return watched().validated;
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
