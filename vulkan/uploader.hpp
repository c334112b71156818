// Brings bytes of the host to device memory when plans are installed: weights, parameter blocks, host-known values.
//
// Mapped device memory is written directly. Otherwise bytes pass through two halves of a mapped staging buffer: while the
// device copies one, the host fills the other. The bytes are complete when `finish` returns.
#pragma once

#include "vulkan/memory.hpp"
#include "vulkan/timeline.hpp"

#include <future>

namespace troupe::vulkan {

class uploader {
public:
  uploader(device_context& context, memory_pool& staging, timeline& queue);
  ~uploader();

  /// Copies `bytes` to `target` at `offset`. `bytes` may be reused when this returns.
  void upload(std::span<const std::byte> bytes, const allocation& target, int64_t offset = 0);
  /// Waits until everything uploaded is there.
  void finish();

private:
  struct half {
    VkCommandBuffer commands = VK_NULL_HANDLE;
    std::future<VkResult> in_flight;
  };

  void copy_piece(std::span<const std::byte> bytes, const allocation& target, int64_t offset);
  static void wait(half& h);

  device_context& context_;
  memory_pool& staging_pool_;
  timeline& queue_;
  command_pool_handle pool_;
  allocation staging_; // made when first needed
  half halves_[2];
  size_t next_ = 0;
};

} // namespace troupe::vulkan
