#include "vulkan/pipelines.hpp"

#include "vulkan/block_constants.hpp"
#include "vulkan/pipeline_file.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <utility>

namespace troupe::vulkan {
namespace {

constexpr unsigned max_compile_threads = 16;

/// Calls `work(i)` for i < count on several threads; rethrows the first exception.
template <class F>
void for_each_parallel(size_t count, F&& work) {
  std::atomic<size_t> next{0};
  std::exception_ptr first;
  std::mutex mutex;
  const auto loop = [&] {
    for (size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!first)
          first = std::current_exception();
      }
    }
  };
  const size_t threads =
      std::min<size_t>({count, std::max(1u, std::thread::hardware_concurrency()), max_compile_threads});
  std::vector<std::jthread> others;
  for (size_t t = 1; t < threads; ++t)
    others.emplace_back(loop);
  loop();
  others.clear();
  if (first)
    std::rethrow_exception(first);
}

} // namespace

pipelines::pipelines(device_context& context, shader_filter alter, size_t max_unused)
    : context_(context), alter_(std::move(alter)), cache_file_(pipeline_file_path(context.facts())),
      max_unused_(max_unused) {
  load_cache();
}

pipelines::~pipelines() {
  if (changed_ && !cache_file_.empty())
    save_cache();
}

void pipelines::load_cache() {
  const std::vector<std::byte> content =
      cache_file_.empty() ? std::vector<std::byte>{} : read_pipeline_file(cache_file_);
  VkPipelineCacheCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
  info.initialDataSize = content.size();
  info.pInitialData = content.data();
  VkPipelineCache cache = VK_NULL_HANDLE;
  check(vkCreatePipelineCache(context_.get(), &info, nullptr, &cache), "vkCreatePipelineCache");
  cache_ = {context_.get(), cache};
}

void pipelines::save_cache() const {
  size_t size = 0;
  if (vkGetPipelineCacheData(context_.get(), cache_.get(), &size, nullptr) != VK_SUCCESS)
    return;
  std::vector<std::byte> content(size);
  if (vkGetPipelineCacheData(context_.get(), cache_.get(), &size, content.data()) != VK_SUCCESS)
    return;
  content.resize(size);
  write_pipeline_file(cache_file_, content);
}

const pipelines::layouts& pipelines::layouts_for(uint32_t buffers) {
  layouts& made = layouts_[buffers];
  if (made.pipeline)
    return made;
  std::vector<VkDescriptorSetLayoutBinding> bindings(buffers + 1);
  for (uint32_t i = 0; i < bindings.size(); ++i) {
    const VkDescriptorType type = i == 0 ? VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    bindings[i] = {i, type, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
  }
  VkDescriptorSetLayoutCreateInfo set_info{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
  set_info.bindingCount = buffers + 1;
  set_info.pBindings = bindings.data();
  VkDescriptorSetLayout set = VK_NULL_HANDLE;
  check(vkCreateDescriptorSetLayout(context_.get(), &set_info, nullptr, &set), "vkCreateDescriptorSetLayout");
  made.set = {context_.get(), set};
  VkPipelineLayoutCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  info.setLayoutCount = 1;
  info.pSetLayouts = &set;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  check(vkCreatePipelineLayout(context_.get(), &info, nullptr, &layout), "vkCreatePipelineLayout");
  made.pipeline = {context_.get(), layout};
  return made;
}

pipeline_handle pipelines::compile(const pipeline_key& key, VkPipelineLayout layout) const {
  std::span<const uint32_t> code = find_shader(key.shader);
  std::vector<uint32_t> altered, folded;
  if (alter_)
    code = altered = alter_(code);
  if (!key.block.empty())
    code = folded = with_block_constants(code, key.block);
  VkShaderModuleCreateInfo module_info{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  module_info.codeSize = code.size_bytes();
  module_info.pCode = code.data();
  VkShaderModule module = VK_NULL_HANDLE;
  check(vkCreateShaderModule(context_.get(), &module_info, nullptr, &module), "vkCreateShaderModule");
  const shader_module_handle owner(context_.get(), module);

  std::vector<VkSpecializationMapEntry> entries(key.constants.size());
  for (uint32_t i = 0; i < entries.size(); ++i)
    entries[i] = {i, i * 4, 4};
  const VkSpecializationInfo constants{static_cast<uint32_t>(entries.size()), entries.data(), key.constants.size() * 4,
                                       key.constants.data()};
  VkComputePipelineCreateInfo info{VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
  info.stage = {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                nullptr,
                0,
                VK_SHADER_STAGE_COMPUTE_BIT,
                module,
                "main",
                &constants};
  info.layout = layout;
  VkPipeline made = VK_NULL_HANDLE;
  check(vkCreateComputePipelines(context_.get(), cache_.get(), 1, &info, nullptr, &made), key.shader.c_str());
  return {context_.get(), made};
}

std::vector<pipelines::handle> pipelines::prepare(std::span<const pipeline_key> keys) {
  compile_missing(keys);
  ++calls_;
  std::vector<handle> wanted;
  for (const pipeline_key& key : keys)
    if (compiled& c = made_.at(key); std::exchange(c.asked, calls_) != calls_)
      wanted.push_back(c.held);
  drop_unused();
  return wanted;
}

void pipelines::compile_missing(std::span<const pipeline_key> keys) {
  std::vector<pipeline_key> missing;
  for (const pipeline_key& key : keys)
    if (!made_.contains(key)) {
      layouts_for(key.buffers);
      missing.push_back(key);
    }
  std::sort(missing.begin(), missing.end());
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  // What takes longest begins first, so that nothing long is left at the end; long code takes long.
  std::stable_sort(missing.begin(), missing.end(), [](const pipeline_key& a, const pipeline_key& b) {
    return find_shader(a.shader).size() > find_shader(b.shader).size();
  });
  std::vector<pipeline_handle> made(missing.size());
  for_each_parallel(missing.size(),
                    [&](size_t i) { made[i] = compile(missing[i], layouts_.at(missing[i].buffers).pipeline.get()); });
  for (size_t i = 0; i < missing.size(); ++i)
    made_.emplace(std::move(missing[i]), compiled{std::make_shared<const pipeline_handle>(std::move(made[i]))});
  changed_ = changed_ || !missing.empty();
}

void pipelines::drop_unused() {
  std::vector<std::map<pipeline_key, compiled>::iterator> unused;
  for (auto it = made_.begin(); it != made_.end(); ++it)
    if (it->second.held.use_count() == 1)
      unused.push_back(it);
  if (unused.size() <= max_unused_)
    return;
  const auto last = unused.end() - static_cast<std::ptrdiff_t>(max_unused_);
  std::nth_element(unused.begin(), last - 1, unused.end(),
                   [](const auto& a, const auto& b) { return a->second.asked < b->second.asked; });
  for (auto it = unused.begin(); it != last; ++it)
    made_.erase(*it);
}

pipeline pipelines::find(const pipeline_key& key) const {
  const auto it = made_.find(key);
  expects(it != made_.end(), "a pipeline was not prepared");
  const layouts& l = layouts_.at(key.buffers);
  return {it->second.held->get(), l.pipeline.get(), l.set.get()};
}

} // namespace troupe::vulkan
