// Brings bytes of the host to device memory when plans are installed: weights, parameter blocks, host-known values.
//
// Mapped device memory is written directly. Otherwise bytes pass through two halves of a mapped staging buffer: while the
// device copies one, the host fills the other, or makes and allocates what is next. Pages of a mapped file are given back piece
// by piece. The bytes are complete when `finish` returns.
#pragma once

#include "vulkan/memory.hpp"
#include "vulkan/timeline.hpp"

#include <future>

namespace troupe::vulkan {

class uploader {
public:
  /// How many bytes go at once; two such pieces are staging memory.
  static constexpr int64_t piece_bytes = int64_t{16} << 20;

  /// `always_stage`: mapped device memory is not written directly either. For tests.
  uploader(device_context& context, memory_pool& staging, timeline& queue, bool always_stage = false);
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

  void write_piece(std::span<const std::byte> bytes, const allocation& target, int64_t offset);
  void copy_piece(std::span<const std::byte> bytes, const allocation& target, int64_t offset);
  static void wait(half& h);

  device_context& context_;
  memory_pool& staging_pool_;
  timeline& queue_;
  const bool always_stage_;
  command_pool_handle pool_;
  allocation staging_; // made when first needed
  half halves_[2];
  size_t next_ = 0;
};

} // namespace troupe::vulkan
