#include "cpu/buffer_pool.hpp"

#include <cstdlib>

namespace troupe {
namespace {

/// Capacities are rounded to powers of two and their halves, so that shapes that grow by a token fit the same buffer.
size_t capacity_of(int64_t bytes) {
  size_t capacity = 64;
  while (capacity < static_cast<size_t>(bytes))
    capacity += capacity % 3 == 0 ? capacity / 3 : capacity / 2;
  return (capacity + 63) / 64 * 64;
}

} // namespace

std::shared_ptr<buffer_pool> buffer_pool::make(int64_t limit) {
  return std::shared_ptr<buffer_pool>(new buffer_pool(limit));
}

buffer_pool::~buffer_pool() {
  for (const auto& [capacity, data] : idle_)
    std::free(data);
}

tensor buffer_pool::take(dtype type, shape dims) {
  if (holds_objects(type))
    return {type, std::move(dims)};
  const int64_t bytes = bytes_of(type, volume(dims));
  const size_t capacity = capacity_of(bytes);
  void* data = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (const auto it = idle_.find(capacity); it != idle_.end()) {
      data = it->second;
      idle_bytes_ -= static_cast<int64_t>(capacity);
      idle_.erase(it);
    }
  }
  if (!data)
    data = std::aligned_alloc(64, capacity);
  if (!data)
    fail(errc::out_of_memory, "host memory: {} bytes cannot be allocated", bytes);
  std::shared_ptr<const void> owner(
      data, [pool = shared_from_this(), capacity](const void* p) { pool->give_back(const_cast<void*>(p), capacity); });
  return {type, std::move(dims), std::move(owner), data};
}

int64_t buffer_pool::idle_bytes() const {
  const std::lock_guard lock(mutex_);
  return idle_bytes_;
}

int64_t buffer_pool::largest_idle_bytes() const {
  const std::lock_guard lock(mutex_);
  return idle_.empty() ? 0 : static_cast<int64_t>(idle_.rbegin()->first);
}

void buffer_pool::give_back(void* data, size_t capacity) {
  {
    const std::lock_guard lock(mutex_);
    if (idle_bytes_ + static_cast<int64_t>(capacity) <= limit_) {
      idle_.emplace(capacity, data);
      idle_bytes_ += static_cast<int64_t>(capacity);
      return;
    }
  }
  std::free(data);
}

} // namespace troupe
