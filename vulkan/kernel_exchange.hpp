// What the driver has compiled for one of a process's equal GPUs, for the others: each kernel is compiled once, for the
// GPU that needs it first.
//
// GPUs with the same driver and pipeline cache UUID load what was compiled for one of them.
#pragma once

#include "base/hash.hpp"
#include "vulkan/pipeline_key.hpp"

#include <condition_variable>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>

namespace troupe::vulkan {

/// See the top of this file. Thread-safe.
class kernel_exchange {
public:
  /// The content of a pipeline cache that has one kernel.
  using code = std::vector<std::byte>;

  /// Keeps at most `max_bytes` of code; a kernel that has gone from it is compiled again.
  explicit kernel_exchange(size_t max_bytes = size_t{64} << 20) : max_bytes_(max_bytes) {}

  /// Returns the exchange of this process's GPUs whose driver and shaders are `compiler`; it lives as long as they do.
  static std::shared_ptr<kernel_exchange> of(const hash128& compiler);

  /// Returns a kernel's code. Empty: the caller has to compile it, and to call `end`. If it is being compiled for
  /// another GPU, waits for the end of that, or returns nullopt if the caller does not wait.
  std::optional<code> begin(const pipeline_key& key, bool waits);
  /// Returns a kernel's code if it was compiled; empty if it was not.
  code find(const pipeline_key& key) const;
  /// Adds the first `count` constants of all that were compiled and have as many.
  void add_first_constants(size_t count, std::set<std::vector<uint32_t>>& to) const;
  /// Hands on what was compiled. Empty: the driver refused it, and other GPUs ask theirs.
  void end(const pipeline_key& key, code compiled);

private:
  struct entry {
    code compiled; // empty while the kernel is being compiled
    uint64_t number = 0;
  };

  const size_t max_bytes_;
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  std::map<pipeline_key, entry> entries_; // this and all below: guarded by mutex_
  size_t bytes_ = 0;
  uint64_t numbers_ = 0;
};

} // namespace troupe::vulkan
