// Copies of whole caches between the orders in which they lie (cache_rows.hpp), in a submission of their own before the
// chunk or the copy to the host that needs them: where a cache begins to grow in place, has no room left, has been
// appended to by another run, or leaves.
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

/// Copies to be done, memory that must live until nobody reads it, and what holds once the copies have been submitted.
struct row_moves {
  std::vector<row_copy> copies;
  std::vector<std::shared_ptr<const allocation>> held;
  std::vector<std::function<void()>> then;
};

class row_copier {
public:
  /// `parameters` is mapped memory.
  row_copier(device_context& context, pipelines& kernels, memory_pool& parameters)
      : context_(context), kernels_(kernels), parameters_(parameters) {}

  /// The kernel; the one that makes float32 of float16 if it `widens`.
  static const pipeline_key& key(bool widens = false);
  /// Whether the device's kernels may have so many buffers.
  bool is_available() const { return context_.facts().max_storage_buffers >= key().buffers; }

  /// Submits the copies, if there are any: after all that is submitted, before all that will be.
  void submit(row_moves& moves, timeline& queue);

private:
  struct recorded;
  void record(recorded& r, std::span<const row_copy> copies);

  device_context& context_;
  pipelines& kernels_;
  memory_pool& parameters_;
  std::vector<pipelines::handle> held_;
};

} // namespace troupe::vulkan
