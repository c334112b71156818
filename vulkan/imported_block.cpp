#include "vulkan/imported_block.hpp"

#include "vulkan/device_choice.hpp"

namespace troupe::vulkan {
namespace {

constexpr auto handle_type = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;

buffer_handle make_buffer(const device_context& context, int64_t bytes) {
  const VkExternalMemoryBufferCreateInfo external{VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO, nullptr,
                                                  handle_type};
  VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, &external};
  info.size = static_cast<VkDeviceSize>(bytes);
  info.usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
  context.share(info);
  VkBuffer made = VK_NULL_HANDLE;
  return vkCreateBuffer(context.get(), &info, nullptr, &made) == VK_SUCCESS ? buffer_handle(context.get(), made)
                                                                            : buffer_handle();
}

} // namespace

bool imports_blocks(const gpu_snapshot& s) {
  return s.has_extension(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME) && s.host_pointer_alignment > 0 &&
         s.host_pointer_alignment <= host_block_alignment;
}

std::optional<imported_block> import_block(const device_context& context, const host_block& block) {
  const auto properties_of = reinterpret_cast<PFN_vkGetMemoryHostPointerPropertiesEXT>(
      vkGetDeviceProcAddr(context.get(), "vkGetMemoryHostPointerPropertiesEXT"));
  imported_block made;
  made.buffer = make_buffer(context, block.bytes());
  VkMemoryHostPointerPropertiesEXT pointer{VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
  if (!made.buffer || !properties_of || properties_of(context.get(), handle_type, block.data(), &pointer) != VK_SUCCESS)
    return std::nullopt;
  VkMemoryRequirements needs;
  vkGetBufferMemoryRequirements(context.get(), made.buffer.get(), &needs);
  const auto type =
      find_memory_type(context.facts(), memory_use::imported, pointer.memoryTypeBits & needs.memoryTypeBits);
  if (!type)
    return std::nullopt;
  const VkImportMemoryHostPointerInfoEXT host{VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT, nullptr,
                                              handle_type, block.data()};
  const VkMemoryAllocateInfo allocate{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, &host,
                                      static_cast<VkDeviceSize>(block.bytes()), *type};
  VkDeviceMemory memory = VK_NULL_HANDLE;
  if (vkAllocateMemory(context.get(), &allocate, nullptr, &memory) != VK_SUCCESS)
    return std::nullopt;
  made.memory = {context.get(), memory};
  check(vkBindBufferMemory(context.get(), made.buffer.get(), memory, 0), "vkBindBufferMemory");
  return made;
}

} // namespace troupe::vulkan
