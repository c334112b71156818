#include "remote/value_room.hpp"

#include "base/error.hpp"

namespace troupe::remote {

held_memory value_room::share::hold(int64_t bytes) {
  {
    const std::lock_guard lock(room_->mutex_);
    const int64_t free = room_->bytes_ - room_->held_;
    // That is `*held_ + bytes <= free - bytes`, without overflow: the number may be a hostile one.
    if (bytes < 0 || bytes > free || *held_ > free - bytes - bytes)
      fail(errc::out_of_memory,
           "this worker has no room for {} bytes more of this session's values: it holds {} for the session and {} for "
           "all sessions, of at most {}",
           bytes, *held_, room_->held_, room_->bytes_);
    *held_ += bytes;
    room_->held_ += bytes;
  }
  const auto give_back = [room = room_, held = held_, bytes](const void*) {
    const std::lock_guard lock(room->mutex_);
    *held -= bytes;
    room->held_ -= bytes;
  };
  return {room_.get(), give_back}; // gives back, too, if the handle cannot be made
}

int64_t value_room::held() {
  const std::lock_guard lock(mutex_);
  return held_;
}

} // namespace troupe::remote
