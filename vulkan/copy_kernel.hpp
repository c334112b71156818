// Copies inside the GPU's memory by a kernel (shaders/copy_ranges.comp): several a dispatch, where each copy command of
// the driver takes microseconds, and at the memory's speed, which an H200's copy commands are ten times from.
#pragma once

#include "vulkan/chunk_recorder.hpp"
#include "vulkan/pipelines.hpp"

namespace troupe::vulkan {

class copy_kernel {
public:
  copy_kernel(device_context& context, pipelines& kernels) : context_(context), kernels_(kernels) {}

  /// Whether the kernel can do a copy: it is inside the GPU's memory, in whole words of 16 bytes, and descriptors may
  /// name its ends.
  bool takes(const direct_copy& copy) const;

  /// Records copies that the kernel takes, in any order. Returns what the commands use until they are recorded anew.
  descriptor_pool_handle record(VkCommandBuffer commands, std::span<const direct_copy> copies);

private:
  pipeline prepared();

  device_context& context_;
  pipelines& kernels_;
  std::vector<pipelines::handle> held_;
};

} // namespace troupe::vulkan
