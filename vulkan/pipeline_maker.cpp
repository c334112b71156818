#include "vulkan/pipeline_maker.hpp"

#include "vulkan/block_constants.hpp"

#include <utility>

namespace troupe::vulkan {

pipeline_maker::pipeline_maker(device_context& context, shader_filter alter)
    : pipeline_maker(context, std::move(alter), pipeline_file_path(context.facts()),
                     read_pipeline_file(pipeline_file_path(context.facts()))) {}

pipeline_maker::pipeline_maker(device_context& context, shader_filter alter, std::string cache_file,
                               const stored_pipelines& stored)
    : context_(context), alter_(std::move(alter)), cache_file_(std::move(cache_file)),
      exchange_(!alter_ && context.facts().refuses_to_compile ? kernel_exchange::of(compiler_of(context.facts()))
                                                              : nullptr),
      cache_(make_cache(stored.driver)), cached_(stored.kernels.begin(), stored.kernels.end()) {}

pipeline_maker::~pipeline_maker() {
  if (!changed_ || cache_file_.empty())
    return;
  if (code content = content_of(cache_.get()); !content.empty())
    write_pipeline_file(cache_file_, {{cached_.begin(), cached_.end()}, std::move(content)});
}

void pipeline_maker::note(const pipeline_key& key) {
  const std::lock_guard lock(mutex_);
  cached_.insert(hash_of(key));
  changed_ = true;
}

pipeline_cache_handle pipeline_maker::make_cache(std::span<const std::byte> content) const {
  VkPipelineCacheCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
  info.initialDataSize = content.size();
  info.pInitialData = content.data();
  VkPipelineCache cache = VK_NULL_HANDLE;
  check(vkCreatePipelineCache(context_.get(), &info, nullptr, &cache), "vkCreatePipelineCache");
  return {context_.get(), cache};
}

pipeline_maker::code pipeline_maker::content_of(VkPipelineCache cache) const {
  size_t size = 0;
  if (vkGetPipelineCacheData(context_.get(), cache, &size, nullptr) != VK_SUCCESS)
    return {};
  code content(size);
  if (vkGetPipelineCacheData(context_.get(), cache, &size, content.data()) != VK_SUCCESS)
    return {};
  content.resize(size);
  return content;
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

VkResult pipeline_maker::create(const pipeline_key& key, VkPipelineCreateFlags flags, VkPipelineCache through,
                                pipeline_handle& made) {
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
  const VkResult result = vkCreateComputePipelines(context_.get(), through, 1, &info, nullptr, &pipeline);
  made = {context_.get(), pipeline};
  return result;
}

std::optional<pipeline_handle> pipeline_maker::make(const pipeline_key& key, bool waits) {
  const bool has_equals = exchange_.use_count() > 1;
  if (has_equals) {
    if (std::optional<pipeline_handle> made = load(key))
      return made;
    const std::optional<code> known = exchange_->begin(key, waits);
    return known ? std::optional(make_for_all(key, *known)) : std::nullopt;
  }
  pipeline_handle made;
  const std::shared_lock lock(cache_mutex_);
  check(create(key, 0, cache_.get(), made), key.shader.c_str());
  note(key);
  return made;
}

pipeline_handle pipeline_maker::make_for_all(const pipeline_key& key, const code& known) {
  pipeline_handle made;
  pipeline_cache_handle own;
  try {
    own = make_cache(known);
    check(create(key, 0, own.get(), made), key.shader.c_str());
  } catch (...) {
    if (known.empty())
      exchange_->end(key, {});
    throw;
  }
  if (known.empty())
    exchange_->end(key, content_of(own.get()));
  const std::unique_lock lock(cache_mutex_);
  const VkPipelineCache from = own.get();
  check(vkMergePipelineCaches(context_.get(), cache_.get(), 1, &from), "vkMergePipelineCaches");
  note(key);
  return made;
}

std::optional<pipeline_handle> pipeline_maker::copy_from_equal_gpu(const pipeline_key& key) {
  const code known = exchange_ ? exchange_->find(key) : code();
  return known.empty() ? std::nullopt : std::optional(make_for_all(key, known));
}

std::optional<pipeline_handle> pipeline_maker::load(const pipeline_key& key) {
  if (!context_.facts().refuses_to_compile)
    return std::nullopt;
  {
    const std::lock_guard inside(mutex_);
    if (!cached_.contains(hash_of(key)))
      return std::nullopt;
  }
  pipeline_handle made;
  const std::shared_lock lock(cache_mutex_);
  const VkResult result = create(key, VK_PIPELINE_CREATE_FAIL_ON_PIPELINE_COMPILE_REQUIRED_BIT, cache_.get(), made);
  return result == VK_SUCCESS ? std::optional(std::move(made)) : std::nullopt;
}

} // namespace troupe::vulkan
