// The same frames between two actors by CAF alone: its broker, its connections, its TLS.
#pragma once

#include "actors/certificates.hpp"
#include "actors/network.hpp"

#include <caf/actor.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

#include <memory>

/// Two actor systems in this process, joined over loopback as CAF does it; one's actor answers each frame with an empty
/// one.
class caf_pair {
public:
  /// Throws std::runtime_error if CAF cannot join them.
  caf_pair(const troupe::host_credentials& worker, const troupe::host_credentials& session);
  ~caf_pair();
  caf_pair(const caf_pair&) = delete;
  caf_pair& operator=(const caf_pair&) = delete;

  /// Sends frames for a time, `in_flight` at once; returns how many a second were answered.
  double frames_a_second(size_t bytes, size_t in_flight, double seconds);

private:
  std::unique_ptr<caf::actor_system_config> far_config_, near_config_;
  std::unique_ptr<caf::actor_system> far_, near_;
  caf::actor echo_, reached_;
};
