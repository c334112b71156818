// Host buffers that are used again: outputs are fresh tensors at every run, and fresh pages cost more than most
// kernels.
//
// A tensor from the pool gives its bytes back when its last handle dies, on whatever thread; the pool outlives its
// owner until then. At most `limit` idle bytes are kept. Thread-safe.
#pragma once

#include "tensor/elements.hpp"

#include <map>
#include <mutex>

namespace troupe {

/// See the top of this file.
class buffer_pool : public std::enable_shared_from_this<buffer_pool> {
public:
  static std::shared_ptr<buffer_pool> make(int64_t limit = int64_t{256} << 20);
  ~buffer_pool();
  buffer_pool(const buffer_pool&) = delete;
  buffer_pool& operator=(const buffer_pool&) = delete;

  /// Returns a tensor with uninitialised bytes (strings are empty); 64-byte aligned.
  tensor take(dtype type, shape dims);

  /// Bytes kept for later, and the largest piece of them.
  int64_t idle_bytes() const;
  int64_t largest_idle_bytes() const;

private:
  explicit buffer_pool(int64_t limit) : limit_(limit) {}
  void give_back(void* data, size_t capacity);

  const int64_t limit_;
  mutable std::mutex mutex_;
  std::multimap<size_t, void*> idle_; // by capacity
  int64_t idle_bytes_ = 0;
};

} // namespace troupe
