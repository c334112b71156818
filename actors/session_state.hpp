// What is behind a session's handle.
#pragma once

#include "actors/actor_runtime.hpp"
#include "troupe/session.hpp"

#include <caf/send.hpp>

namespace troupe {

struct session::state {
  std::shared_ptr<actors::actor_runtime> runtime; // destroyed last: the coordinator's handle needs its system
  model_ptr model;
  actors::coordinator_ref coordinator;

  ~state() { caf::anon_send(coordinator, actors::close_session{}); }
};

} // namespace troupe
