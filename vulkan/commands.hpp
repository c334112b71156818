// Small helpers around command buffers.
#pragma once

#include "vulkan/device_context.hpp"

#include <span>

namespace troupe::vulkan {

/// Makes a command pool for a queue of the context.
command_pool_handle make_command_pool(device_context& context, VkCommandPoolCreateFlags flags = 0,
                                      lane on = lane::work);

/// Makes a primary command buffer; it ends with its pool.
VkCommandBuffer make_commands(device_context& context, const command_pool_handle& pool);

/// Makes a pool for `sets` sets of kernels' bindings, with a block of parameters each and `storage_buffers` in all.
descriptor_pool_handle make_descriptor_pool(device_context& context, uint32_t sets, uint32_t storage_buffers);

/// Makes a set; it ends with its pool.
VkDescriptorSet allocate_set(device_context& context, const descriptor_pool_handle& pool, VkDescriptorSetLayout layout);

/// Names a kernel's block of parameters, then its storage buffers.
void describe_set(device_context& context, VkDescriptorSet set, std::span<const VkDescriptorBufferInfo> buffers);

/// Begins recording.
void begin(VkCommandBuffer commands, VkCommandBufferUsageFlags usage);
/// Ends recording.
void end(VkCommandBuffer commands);

/// A global memory barrier between two kinds of work.
struct barrier {
  VkPipelineStageFlags from_stage = 0;
  VkAccessFlags from_access = 0;
  VkPipelineStageFlags to_stage = 0;
  VkAccessFlags to_access = 0;
};
void record(VkCommandBuffer commands, const barrier& b);

} // namespace troupe::vulkan
