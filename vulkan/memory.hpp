// GPU memory: buffers cut out of larger blocks, because drivers allow few allocations and each is slow.
//
// A block is one VkBuffer with its VkDeviceMemory; allocations are ranges of it, found first-fit in an ordered free
// list. Requests over half the largest block get a block of their own. Blocks of the host's memory begin small and
// double, since they stay resident. A pool serves one use (memory_use); blocks that become empty are freed, except one,
// which goes when it is in the way. Thread-safe, so that what a submission holds may end on any thread.
//
// Mapped memory that is not coherent is flushed after the host wrote (`flush`) and invalidated before it reads
// (`invalidate`). In the forced non-coherent mode of the tests the host sees a shadow copy that only those two move, so
// that a forgotten one is a wrong result on any driver.
#pragma once

#include "vulkan/device_choice.hpp"
#include "vulkan/device_context.hpp"

#include <map>
#include <mutex>

namespace troupe::vulkan {

struct memory_block;
class memory_pool;

/// A range of GPU memory; returned to its pool at the end of its life.
class allocation {
public:
  allocation() = default;
  allocation(memory_pool* pool, std::shared_ptr<memory_block> block, int64_t offset, int64_t bytes)
      : pool_(pool), block_(std::move(block)), offset_(offset), bytes_(bytes) {}
  allocation(allocation&& other) noexcept { *this = std::move(other); }
  allocation& operator=(allocation&& other) noexcept;
  ~allocation();

  VkBuffer buffer() const;
  int64_t offset() const { return offset_; }
  int64_t bytes() const { return bytes_; }
  explicit operator bool() const { return block_ != nullptr; }

  /// The bytes as the host sees them; null if the memory is not mapped.
  std::byte* mapped() const;
  /// Makes what the host wrote to [offset, offset + bytes) of this allocation visible to the device.
  void flush(int64_t offset, int64_t bytes) const;
  /// Makes what the device wrote there visible to the host.
  void invalidate(int64_t offset, int64_t bytes) const;

private:
  memory_pool* pool_ = nullptr;
  std::shared_ptr<memory_block> block_;
  int64_t offset_ = 0, bytes_ = 0;
};

/// See the top of this file. Must outlive its allocations.
class memory_pool {
public:
  /// The pool never takes more than `limit` bytes from the driver.
  memory_pool(device_context& context, memory_use use, bool force_non_coherent, int64_t limit = INT64_MAX);

  /// Returns at least `bytes` bytes at a multiple of 256; throws `errc::out_of_memory` with what was asked for and what
  /// is left.
  allocation allocate(int64_t bytes);

  /// Bytes that the pool has from the driver.
  int64_t reserved_bytes() const;
  /// Of those, bytes that no allocation has, and the largest piece of them.
  int64_t free_bytes() const;
  int64_t largest_gap_bytes() const;

private:
  friend class allocation;
  allocation find_gap(int64_t bytes);
  /// Returns the bytes of the next block that several allocations share, the first of which wants `bytes`.
  int64_t shared_block_bytes(int64_t bytes) const;
  /// Whether a block that has become empty may stay: as the only one of the device's memory; of the host's, which is
  /// small, as the only empty one.
  bool may_keep(const memory_block& empty) const;
  void add_block(int64_t bytes);
  std::shared_ptr<memory_block> make_block(int64_t bytes) const;
  void drop_empty_blocks();
  void give_back(const std::shared_ptr<memory_block>& block, int64_t offset, int64_t bytes);

  device_context& context_;
  memory_use use_;
  int64_t largest_shared_; // bytes of a block
  bool force_non_coherent_;
  int64_t limit_;
  mutable std::mutex mutex_; // of what follows
  std::vector<std::shared_ptr<memory_block>> blocks_;
  int64_t reserved_ = 0;
};

} // namespace troupe::vulkan
