// The listeners to what a host says of its devices. Thread-safe; nothing is called under the lock.
#pragma once

#include "remote/messages.hpp"

#include <functional>
#include <map>
#include <mutex>

namespace troupe::remote {

/// Weights on their way to a host.
struct load_progress {
  int64_t came = 0, total = 0; // bytes
};

/// Hears what the host says of one device.
struct device_listener {
  std::function<void(chunk_made)> on_chunk;
  std::function<void(installed)> on_installed;
  std::function<void()> on_progress; // weights of an install have come
};

/// See the top of this file. Each `tell` throws `errc::invalid_input` if the host says what cannot be.
class device_news {
public:
  explicit device_news(size_t devices) : devices_(devices) {}

  void listen(uint32_t device, device_listener who);
  /// Calls `told(device, bytes)` when sessions of other processes lack memory of a device that this one's hold; see
  /// `memory_wanted`.
  using memory_told = std::function<void(uint32_t device, int64_t bytes)>;
  void on_memory_wanted(memory_told told);
  load_progress loads() const;

  void tell(chunk_made made);
  void tell(installed done);
  void tell(const loading& how_far);
  void tell(const memory_wanted& lack);
  /// Nothing is told any more.
  void end();

private:
  device_listener listener_of(uint32_t device) const;

  const size_t devices_;
  mutable std::mutex mutex_; // guards the rest
  std::map<uint32_t, device_listener> listeners_;
  std::map<uint32_t, load_progress> loads_; // by device
  memory_told told_memory_;
};

} // namespace troupe::remote
