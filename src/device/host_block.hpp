// Host memory that the devices of a process share: tensors in it pass between devices without a copy.
//
// A block is page-aligned memory with an id. A tensor made from the pool keeps its block in use; when its last handle
// dies, on whatever thread, the block becomes idle and is used again for tensors of its size class. A device finds the
// block in which the bytes of an upload are (`find`), imports it, and keeps the import under the block's id: the same
// block comes back with the same id, so that a steady state imports nothing anew.
//
// Life of a block: its memory is unmapped when the last `host_block_ptr` dies, be it the pool's, a tensor's or a
// device's. A device keeps the pointer as long as it keeps the import. The pool gives up idle blocks over its bound,
// the longest idle first: such a block is `retired`, no tensor will ever be in it again, and devices should let go of
// it soon. Ids are never used twice in a process. All is thread-safe; tensors and blocks may outlive the pool.
#pragma once

#include "tensor/elements.hpp"
#include "tensor/tensor_maker.hpp"

#include <atomic>

namespace troupe {

/// Alignment of blocks, and what their sizes are multiples of: no Vulkan device asks more of imported memory.
inline constexpr int64_t host_block_alignment = 65536;

/// Memory of one or more pages (see the top of this file).
class host_block {
public:
  ~host_block();
  host_block(const host_block&) = delete;
  host_block& operator=(const host_block&) = delete;

  uint64_t id() const { return id_; }
  /// The first byte, a multiple of `host_block_alignment`.
  void* data() const { return data_; }
  /// Bytes, a multiple of `host_block_alignment`.
  int64_t bytes() const { return bytes_; }
  /// Returns whether the pool has given the block up.
  bool retired() const { return retired_.load(std::memory_order_acquire); }

private:
  friend class host_block_pool;
  struct registry;
  host_block(std::shared_ptr<registry> all, uint64_t id, void* data, int64_t bytes);

  const std::shared_ptr<registry> registry_;
  const uint64_t id_;
  void* const data_;
  const int64_t bytes_;
  std::atomic<bool> retired_{false};
};

using host_block_ptr = std::shared_ptr<const host_block>;

/// Counters of a pool.
struct host_pool_stats {
  int64_t used_bytes = 0;   // of blocks that tensors are in
  int64_t idle_bytes = 0;   // of blocks kept for later
  int64_t mapped_bytes = 0; // of all blocks, those included that only devices hold
  uint64_t mapped = 0;      // blocks mapped so far
  uint64_t reused = 0;      // tensors made in a block that was idle
};

/// Returns a sixteenth of the machine's memory, at least 1 GiB: what large transfers hold at once must stay, since
/// mapping and importing blocks anew takes longer than copying them.
int64_t default_idle_bytes();

/// Keeps and reuses blocks (see the top of this file).
class host_block_pool {
public:
  /// At most `max_idle_bytes` are kept idle.
  explicit host_block_pool(int64_t max_idle_bytes = default_idle_bytes());
  ~host_block_pool();
  host_block_pool(const host_block_pool&) = delete;
  host_block_pool& operator=(const host_block_pool&) = delete;

  /// Returns the block in which the `bytes` bytes from `address` on are; null if they are not all in one of this pool's
  /// blocks. The bytes must be alive.
  host_block_ptr find(const void* address, int64_t bytes) const;

  /// Gives up all idle blocks.
  void trim();

  host_pool_stats stats() const;

private:
  friend tensor make_host_tensor(host_block_pool& pool, dtype type, shape dims);
  struct state;
  struct lease;

  std::shared_ptr<state> state_;
};

/// Returns a tensor in a block of its own, its bytes uninitialised; strings and tensors without bytes are ordinary
/// ones. Throws `errc::out_of_memory` with the bytes needed.
tensor make_host_tensor(host_block_pool& pool, dtype type, shape dims);

/// Returns a function that makes tensors in blocks; small tensors are ordinary ones.
tensor_maker maker_in(std::shared_ptr<host_block_pool> pool);

} // namespace troupe
