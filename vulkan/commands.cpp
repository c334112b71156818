#include "vulkan/commands.hpp"

namespace troupe::vulkan {

command_pool_handle make_command_pool(device_context& context, VkCommandPoolCreateFlags flags, lane on) {
  const VkCommandPoolCreateInfo info{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, nullptr, flags, context.family(on)};
  VkCommandPool pool = VK_NULL_HANDLE;
  check(vkCreateCommandPool(context.get(), &info, nullptr, &pool), "vkCreateCommandPool");
  return {context.get(), pool};
}

VkCommandBuffer make_commands(device_context& context, const command_pool_handle& pool) {
  const VkCommandBufferAllocateInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, nullptr, pool.get(),
                                         VK_COMMAND_BUFFER_LEVEL_PRIMARY, 1};
  VkCommandBuffer commands = VK_NULL_HANDLE;
  check(vkAllocateCommandBuffers(context.get(), &info, &commands), "vkAllocateCommandBuffers");
  return commands;
}

descriptor_pool_handle make_descriptor_pool(device_context& context, uint32_t sets, uint32_t storage_buffers) {
  const VkDescriptorPoolSize sizes[] = {{VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, sets},
                                        {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, storage_buffers}};
  const VkDescriptorPoolCreateInfo info{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, nullptr, 0, sets, 2, sizes};
  VkDescriptorPool pool = VK_NULL_HANDLE;
  check(vkCreateDescriptorPool(context.get(), &info, nullptr, &pool), "vkCreateDescriptorPool");
  return {context.get(), pool};
}

VkDescriptorSet allocate_set(device_context& context, const descriptor_pool_handle& pool,
                             VkDescriptorSetLayout layout) {
  const VkDescriptorSetAllocateInfo info{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO, nullptr, pool.get(), 1,
                                         &layout};
  VkDescriptorSet set = VK_NULL_HANDLE;
  check(vkAllocateDescriptorSets(context.get(), &info, &set), "vkAllocateDescriptorSets");
  return set;
}

void describe_set(device_context& context, VkDescriptorSet set, std::span<const VkDescriptorBufferInfo> buffers) {
  VkWriteDescriptorSet params{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET, nullptr, set, 0, 0, 1};
  params.descriptorType = VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER;
  params.pBufferInfo = buffers.data();
  std::vector<VkWriteDescriptorSet> writes{params};
  for (uint32_t i = 1; i < buffers.size(); ++i) {
    VkWriteDescriptorSet w{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET, nullptr, set, i, 0, 1};
    w.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    w.pBufferInfo = &buffers[i];
    writes.push_back(w);
  }
  vkUpdateDescriptorSets(context.get(), static_cast<uint32_t>(writes.size()), writes.data(), 0, nullptr);
}

void begin(VkCommandBuffer commands, VkCommandBufferUsageFlags usage) {
  const VkCommandBufferBeginInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, nullptr, usage, nullptr};
  check(vkBeginCommandBuffer(commands, &info), "vkBeginCommandBuffer");
}

void end(VkCommandBuffer commands) {
  check(vkEndCommandBuffer(commands), "vkEndCommandBuffer");
}

void record(VkCommandBuffer commands, const barrier& b) {
  const VkMemoryBarrier memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, b.from_access, b.to_access};
  vkCmdPipelineBarrier(commands, b.from_stage, b.to_stage, 0, 1, &memory, 0, nullptr, 0, nullptr);
}

} // namespace troupe::vulkan
