#include "vulkan/host_imports.hpp"

#include "vulkan/device_choice.hpp"

#include <cstring>

namespace troupe::vulkan {

host_imports::host_imports(device_context& context, std::shared_ptr<host_block_pool> blocks)
    : context_(context), blocks_(std::move(blocks)) {
  const gpu_snapshot& facts = context_.facts();
  const bool can = blocks_ && facts.has_extension(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME) &&
                   facts.host_pointer_alignment > 0 && facts.host_pointer_alignment <= host_block_alignment;
  if (can)
    import_properties_ = reinterpret_cast<PFN_vkGetMemoryHostPointerPropertiesEXT>(
        vkGetDeviceProcAddr(context_.get(), "vkGetMemoryHostPointerPropertiesEXT"));
}

host_imports::imported host_imports::import(host_block_ptr block) const {
  constexpr auto handle_type = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
  imported made{.block = std::move(block)};
  const auto bytes = static_cast<VkDeviceSize>(made.block->bytes());
  const VkExternalMemoryBufferCreateInfo external{VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO, nullptr,
                                                  handle_type};
  VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, &external};
  info.size = bytes;
  info.usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  context_.share(info);
  VkBuffer buffer = VK_NULL_HANDLE;
  check(vkCreateBuffer(context_.get(), &info, nullptr, &buffer), "vkCreateBuffer");
  made.buffer = {context_.get(), buffer};
  VkMemoryRequirements needs;
  vkGetBufferMemoryRequirements(context_.get(), buffer, &needs);
  VkMemoryHostPointerPropertiesEXT pointer{VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
  check(import_properties_(context_.get(), handle_type, made.block->data(), &pointer),
        "vkGetMemoryHostPointerPropertiesEXT");
  const uint32_t type =
      memory_type_for(context_.facts(), memory_use::download, pointer.memoryTypeBits & needs.memoryTypeBits);
  const VkImportMemoryHostPointerInfoEXT host{VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT, nullptr,
                                              handle_type, made.block->data()};
  const VkMemoryAllocateInfo allocate{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, &host, bytes, type};
  VkDeviceMemory memory = VK_NULL_HANDLE;
  check(vkAllocateMemory(context_.get(), &allocate, nullptr, &memory), "importing host memory");
  made.memory = {context_.get(), memory};
  check(vkBindBufferMemory(context_.get(), buffer, memory, 0), "vkBindBufferMemory");
  return made;
}

host_imports::place host_imports::place_of(const tensor& t) {
  host_block_ptr block = blocks_->find(t.data(), t.bytes());
  expects(block != nullptr, "a tensor to import lies in no host block");
  const auto* base = static_cast<const std::byte*>(block->data());
  const auto offset = static_cast<VkDeviceSize>(static_cast<const std::byte*>(t.data()) - base);
  const uint64_t id = block->id();
  auto found = imports_.find(id);
  if (found == imports_.end()) {
    forget_retired();
    found = imports_.emplace(id, import(std::move(block))).first;
  }
  return {id, found->second.buffer.get(), offset};
}

tensor host_imports::in_block(const tensor& t) {
  if (blocks_->find(t.data(), t.bytes()))
    return t;
  tensor copy = make(t.type(), t.dims());
  std::memcpy(copy.mutable_data(), t.data(), static_cast<size_t>(t.bytes()));
  return copy;
}

/// No tensor will ever be in a retired block again, and none in flight is: the pool retires idle blocks only.
void host_imports::forget_retired() {
  std::erase_if(imports_, [](const auto& entry) { return entry.second.block->retired(); });
}

} // namespace troupe::vulkan
