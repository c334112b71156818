// Copies inside the GPU's memory by a kernel (shaders/copy_rows.comp): several a dispatch, where each copy command of
// the driver takes microseconds, and at the memory's speed, which an H200's copy commands are ten times from. So do
// values go to and from the host's memory that peers exchange.
//
// Whole caches are copied between the orders of their rows (cache_rows.hpp) in a submission of their own before the
// chunk or the copy to the host that needs them: where a cache begins to grow in place, has no room left, has been
// appended to by another run, or leaves. Other values that stay on the GPU are copied by commands of their chunk
// (direct_copies.hpp).
#pragma once

#include "vulkan/cache_rows.hpp"
#include "vulkan/memory.hpp"
#include "vulkan/pipelines.hpp"
#include "vulkan/timeline.hpp"

#include <functional>

namespace troupe::vulkan {

/// One of them.
struct row_copy {
  row_steps steps;
  VkDescriptorBufferInfo from, to;
};

/// Copies to be done, memory that must live until it is read no more, and what to do once the copies are submitted.
struct row_moves {
  std::vector<row_copy> copies;
  std::vector<std::shared_ptr<const allocation>> held;
  std::vector<std::function<void()>> then;
};

/// What dispatches of copies use until they are recorded anew.
struct dispatched_copies {
  descriptor_pool_handle descriptors;
  allocation parameters;
};

class row_copier {
public:
  /// `parameters` is mapped memory.
  row_copier(device_context& context, pipelines& kernels, memory_pool& parameters)
      : context_(context), kernels_(kernels), parameters_(parameters) {}

  /// The kernel; the one that makes float32 of float16 if it `widens`.
  static const pipeline_key& key(bool widens = false);
  /// Whether the device's kernels may have as many buffers as that kernel needs.
  bool is_available() const { return context_.facts().max_storage_buffers >= key().buffers; }

  /// Whether the kernel can copy a range, which is as long as the other: in whole words, and descriptors may name it.
  bool takes(const VkDescriptorBufferInfo& range) const;

  /// Records copies.
  dispatched_copies record(VkCommandBuffer commands, std::span<const row_copy> copies);

  /// Submits the copies, if there are any: after all that is submitted, before all that will be.
  void submit(row_moves& moves, timeline& queue);

private:
  device_context& context_;
  pipelines& kernels_;
  memory_pool& parameters_;
  std::vector<pipelines::handle> held_;
};

} // namespace troupe::vulkan
