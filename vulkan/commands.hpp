// Small helpers around command buffers.
#pragma once

#include "vulkan/device_context.hpp"

namespace troupe::vulkan {

/// Makes a command pool for a queue of the context.
command_pool_handle make_command_pool(device_context& context, VkCommandPoolCreateFlags flags = 0,
                                      lane on = lane::work);

/// Makes a primary command buffer; it ends with its pool.
VkCommandBuffer make_commands(device_context& context, const command_pool_handle& pool);

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
