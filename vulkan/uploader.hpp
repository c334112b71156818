// Brings bytes of the host to device memory when a plan is installed: weights, parameter blocks, host-known values.
//
// Each installation has one of its own. Copies that are on their way keep the memory that they write, and the end of
// the uploader waits for them: so an installation may fail at any point and free what it has made so far.
//
// Mapped device memory is written directly. Otherwise bytes pass through two pieces of mapped staging memory, as large
// as what they have held: while the device copies one, the host fills the other, or makes and allocates what is next.
// Pages of a mapped file are given back piece by piece. The bytes are complete when `finish` returns.
#pragma once

#include "vulkan/memory.hpp"
#include "vulkan/timeline.hpp"

#include <future>

namespace troupe::vulkan {

class uploader {
public:
  /// How many bytes go at once; two such pieces are staging memory at most.
  static constexpr int64_t piece_bytes = int64_t{16} << 20;

  /// `always_stage`: mapped device memory is not written directly either. For tests.
  uploader(device_context& context, memory_pool& staging, timeline& queue, bool always_stage = false);
  ~uploader();

  /// Copies `bytes` to `target`, from its beginning. `bytes` may be reused when this returns. Throws what the driver
  /// reports, of copies begun before too.
  void upload(std::span<const std::byte> bytes, const std::shared_ptr<const allocation>& target);
  /// Waits until everything uploaded is there. Throws as `upload` does.
  void finish();

private:
  struct half {
    VkCommandBuffer commands = VK_NULL_HANDLE;
    allocation staging;
    std::shared_ptr<const allocation> target; // of the copy in flight
    std::future<VkResult> in_flight;
  };

  /// Returns the half whose turn it is, with room for `bytes`, when its last copy is done.
  half& half_for(int64_t bytes);
  static void write_piece(std::span<const std::byte> bytes, const allocation& target, int64_t offset);
  void copy_piece(std::span<const std::byte> bytes, const std::shared_ptr<const allocation>& target, int64_t offset);
  static void wait(half& h);

  device_context& context_;
  memory_pool& staging_pool_;
  timeline& queue_;
  const bool always_stage_;
  command_pool_handle pool_; // made when first needed
  half halves_[2];
  size_t next_ = 0;
};

} // namespace troupe::vulkan
