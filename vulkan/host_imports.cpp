#include "vulkan/host_imports.hpp"

#include "base/parallel.hpp"

#include <algorithm>

namespace troupe::vulkan {
namespace {

constexpr auto handle_type = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;

buffer_handle make_buffer(const device_context& context, int64_t bytes) {
  const VkExternalMemoryBufferCreateInfo external{VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO, nullptr,
                                                  handle_type};
  VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, &external};
  info.size = static_cast<VkDeviceSize>(bytes);
  info.usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  context.share(info);
  VkBuffer made = VK_NULL_HANDLE;
  return vkCreateBuffer(context.get(), &info, nullptr, &made) == VK_SUCCESS ? buffer_handle(context.get(), made)
                                                                            : buffer_handle();
}

} // namespace

void host_end::fetch(const std::function<void(int64_t)>& fetched) {
  parallel_copy(value_.mutable_data(), from_.data(), from_.bytes(), fetched);
}

tensor host_end::take() {
  if (staging_) {
    staging_.invalidate(0, value_.bytes());
    parallel_copy(value_.mutable_data(), staging_.mapped(), value_.bytes());
  }
  return std::move(value_);
}

host_imports::host_imports(device_context& context, std::shared_ptr<host_block_pool> blocks, memory_pool& uploads,
                           memory_pool& downloads, size_t max_imports)
    : context_(context), blocks_(std::move(blocks)), uploads_(uploads), downloads_(downloads),
      max_imports_(max_imports) {
  const gpu_snapshot& facts = context_.facts();
  const bool can = blocks_ && facts.has_extension(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME) &&
                   facts.host_pointer_alignment > 0 && facts.host_pointer_alignment <= host_block_alignment;
  if (can)
    import_properties_ = reinterpret_cast<PFN_vkGetMemoryHostPointerPropertiesEXT>(
        vkGetDeviceProcAddr(context_.get(), "vkGetMemoryHostPointerPropertiesEXT"));
}

host_imports::fetching host_imports::fetching_of(const tensor& t) const {
  return available() && blocks_->find(t.data(), t.bytes()) ? fetching::none : fetching::now;
}

host_end host_imports::source(const tensor& t) {
  return place_source(t, fetching_of(t));
}

host_end host_imports::unfetched_source(const tensor& t) {
  return place_source(t, fetching_of(t) == fetching::none ? fetching::none : fetching::later);
}

host_end host_imports::copied_source(const tensor& t) {
  return place_source(t, fetching::now);
}

/// With `fetching::none` the bytes of `t` are read where they are, which must be in a block.
host_end host_imports::place_source(const tensor& t, fetching how) {
  host_end end;
  end.value_ = t;
  if (t.bytes() == 0)
    return end;
  if (available() && how != fetching::none)
    end.value_ = make_host_tensor(*blocks_, t.type(), t.dims());
  if (place_in_import(end)) {
    if (how == fetching::later)
      end.from_ = t;
    else if (how == fetching::now)
      parallel_copy(end.value_.mutable_data(), t.data(), t.bytes());
    return end;
  }
  place_in_staging(end, uploads_);
  parallel_copy(end.staging_.mapped(), t.data(), t.bytes());
  end.staging_.flush(0, t.bytes());
  return end;
}

host_end host_imports::target(dtype type, const shape& dims) {
  host_end end;
  end.value_ = available() ? make_host_tensor(*blocks_, type, dims) : tensor(type, dims);
  if (end.value_.bytes() > 0 && !place_in_import(end))
    place_in_staging(end, downloads_);
  return end;
}

/// Returns false if the tensor's block cannot be imported.
bool host_imports::place_in_import(host_end& end) {
  if (!available())
    return false;
  const tensor& t = end.value_;
  host_block_ptr block = blocks_->find(t.data(), t.bytes());
  expects(block != nullptr, "a tensor to import is in no host block");
  const std::shared_ptr<const imported> found = find_or_import(std::move(block));
  if (!found)
    return false;
  end.id = found->id;
  end.buffer = found->buffer.get();
  end.offset = static_cast<VkDeviceSize>(static_cast<const std::byte*>(t.data()) -
                                         static_cast<const std::byte*>(found->block->data()));
  end.import_ = found;
  return true;
}

void host_imports::place_in_staging(host_end& end, memory_pool& pool) {
  end.staging_ = pool.allocate(end.value_.bytes());
  end.id = ++last_id_;
  end.buffer = end.staging_.buffer();
  end.offset = static_cast<VkDeviceSize>(end.staging_.offset());
}

/// Returns null if the block cannot be imported.
std::shared_ptr<const host_imports::imported> host_imports::find_or_import(host_block_ptr block) {
  const uint64_t id = block->id();
  auto found = imports_.find(id);
  if (found == imports_.end()) {
    forget_retired();
    std::shared_ptr<const imported> made = make_room() ? import(std::move(block)) : nullptr;
    if (!made)
      return nullptr;
    found = imports_.emplace(id, entry{std::move(made)}).first;
  }
  found->second.used = ++uses_;
  return found->second.held;
}

/// Returns null if the driver refuses: it need not take every kind of host memory, nor any amount of it.
std::shared_ptr<const host_imports::imported> host_imports::import(host_block_ptr block) {
  auto made = std::make_shared<imported>();
  made->buffer = make_buffer(context_, block->bytes());
  VkMemoryHostPointerPropertiesEXT pointer{VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
  if (!made->buffer || import_properties_(context_.get(), handle_type, block->data(), &pointer) != VK_SUCCESS)
    return nullptr;
  VkMemoryRequirements needs;
  vkGetBufferMemoryRequirements(context_.get(), made->buffer.get(), &needs);
  const auto type =
      find_memory_type(context_.facts(), memory_use::imported, pointer.memoryTypeBits & needs.memoryTypeBits);
  if (!type)
    return nullptr;
  const VkImportMemoryHostPointerInfoEXT host{VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT, nullptr,
                                              handle_type, block->data()};
  const VkMemoryAllocateInfo allocate{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, &host,
                                      static_cast<VkDeviceSize>(block->bytes()), *type};
  VkDeviceMemory memory = VK_NULL_HANDLE;
  if (vkAllocateMemory(context_.get(), &allocate, nullptr, &memory) != VK_SUCCESS)
    return nullptr;
  made->memory = {context_.get(), memory};
  check(vkBindBufferMemory(context_.get(), made->buffer.get(), memory, 0), "vkBindBufferMemory");
  made->block = std::move(block);
  made->id = ++last_id_;
  return made;
}

/// Ends the import that was used longest ago if there are as many as there may be. Returns false if all are in use.
bool host_imports::make_room() {
  if (imports_.size() < max_imports_)
    return true;
  auto oldest = imports_.end();
  for (auto it = imports_.begin(); it != imports_.end(); ++it)
    if (it->second.held.use_count() == 1 && (oldest == imports_.end() || it->second.used < oldest->second.used))
      oldest = it;
  if (oldest == imports_.end())
    return false;
  imports_.erase(oldest);
  return true;
}

void host_imports::forget_retired() {
  std::erase_if(imports_, [](const auto& entry) { return entry.second.held->block->retired(); });
}

} // namespace troupe::vulkan
