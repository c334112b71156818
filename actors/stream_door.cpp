#include "actors/stream_door.hpp"

#include "base/error.hpp"

#include <caf/send.hpp>

namespace troupe::actors {

request_gate::ticket request_gate::enter(std::optional<run_time> deadline, const std::stop_token& cancel) {
  std::unique_lock lock(mutex_);
  const auto has_room = [this] { return taken_ < limit_; };
  if (deadline)
    changed_.wait_until(lock, cancel, *deadline, has_room);
  else
    changed_.wait(lock, cancel, has_room);
  if (cancel.stop_requested())
    fail(errc::cancelled, "the request was cancelled");
  if (!has_room())
    fail(errc::timeout, "the request's deadline passed while {} others had no answer: none more than that are taken in",
         taken_);
  return take();
}

request_gate::ticket request_gate::enter_at_once() {
  const std::lock_guard lock(mutex_);
  return take();
}

request_gate::ticket request_gate::take() {
  ++taken_;
  return {static_cast<const void*>(this), [self = shared_from_this()](const void*) {
            {
              const std::lock_guard inside(self->mutex_);
              --self->taken_;
            }
            self->changed_.notify_one();
          }};
}

stream_door::~stream_door() {
  caf::anon_send(actor_, close_session{});
}

} // namespace troupe::actors
