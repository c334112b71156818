#include "vulkan/pipeline_maker.hpp"

#include "vulkan/block_constants.hpp"
#include "vulkan/pipeline_file.hpp"

#include <utility>

namespace troupe::vulkan {

pipeline_maker::pipeline_maker(device_context& context, shader_filter alter)
    : context_(context), alter_(std::move(alter)), cache_file_(pipeline_file_path(context.facts())) {
  load_cache();
}

pipeline_maker::~pipeline_maker() {
  if (changed_ && !cache_file_.empty())
    save_cache();
}

void pipeline_maker::load_cache() {
  const std::vector<std::byte> content =
      cache_file_.empty() ? std::vector<std::byte>{} : read_pipeline_file(cache_file_);
  VkPipelineCacheCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
  info.initialDataSize = content.size();
  info.pInitialData = content.data();
  VkPipelineCache cache = VK_NULL_HANDLE;
  check(vkCreatePipelineCache(context_.get(), &info, nullptr, &cache), "vkCreatePipelineCache");
  cache_ = {context_.get(), cache};
}

void pipeline_maker::save_cache() const {
  size_t size = 0;
  if (vkGetPipelineCacheData(context_.get(), cache_.get(), &size, nullptr) != VK_SUCCESS)
    return;
  std::vector<std::byte> content(size);
  if (vkGetPipelineCacheData(context_.get(), cache_.get(), &size, content.data()) != VK_SUCCESS)
    return;
  content.resize(size);
  write_pipeline_file(cache_file_, content);
}

const pipeline_maker::layouts& pipeline_maker::layouts_for(uint32_t buffers) const {
  const std::lock_guard lock(mutex_);
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

VkResult pipeline_maker::create(const pipeline_key& key, VkPipelineCreateFlags flags, pipeline_handle& made) {
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
  VkComputePipelineCreateInfo info{VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO, nullptr, flags};
  info.stage = {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                nullptr,
                0,
                VK_SHADER_STAGE_COMPUTE_BIT,
                module,
                "main",
                &constants};
  info.layout = layouts_for(key.buffers).pipeline.get();
  VkPipeline pipeline = VK_NULL_HANDLE;
  const VkResult result = vkCreateComputePipelines(context_.get(), cache_.get(), 1, &info, nullptr, &pipeline);
  made = {context_.get(), pipeline};
  return result;
}

pipeline_handle pipeline_maker::make(const pipeline_key& key) {
  pipeline_handle made;
  check(create(key, 0, made), key.shader.c_str());
  changed_ = true;
  return made;
}

std::optional<pipeline_handle> pipeline_maker::load(const pipeline_key& key) {
  if (!context_.facts().refuses_to_compile)
    return std::nullopt;
  pipeline_handle made;
  const VkResult result = create(key, VK_PIPELINE_CREATE_FAIL_ON_PIPELINE_COMPILE_REQUIRED_BIT, made);
  return result == VK_SUCCESS ? std::optional(std::move(made)) : std::nullopt;
}

} // namespace troupe::vulkan
