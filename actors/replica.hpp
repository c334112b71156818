// A replica of a session: a coordinator whose plans use some of the engine's devices.
#pragma once

#include "actors/device_actor.hpp"
#include "run/model.hpp"
#include "strategy/model_rows.hpp"
#include "strategy/replica_sets.hpp"

#include <caf/send.hpp>

namespace troupe::actors {

/// A coordinator; once nobody holds it, it ends after its last run.
class open_coordinator {
public:
  explicit open_coordinator(coordinator_ref actor) : actor_(std::move(actor)) {}
  ~open_coordinator() { caf::anon_send(actor_, close_session{}); }
  open_coordinator(const open_coordinator&) = delete;
  open_coordinator& operator=(const open_coordinator&) = delete;

  const coordinator_ref& actor() const { return actor_; }

private:
  coordinator_ref actor_;
};

struct replica {
  std::shared_ptr<const open_coordinator> session;
  replica_set devices;
  std::vector<std::shared_ptr<device_health>> own; // of `devices.own`, as far as they are there
  replica_figures predicted;

  /// Returns why nothing should be begun on it; empty if there is no reason.
  std::string out_because() const;
};

/// What a session consists of.
struct session_replicas {
  std::vector<replica> replicas; // at least one
  std::shared_ptr<const model_rows> rows;
};

class actor_runtime;

/// Opens the replicas that a model's options ask for; without a strategy one. Throws what planning throws, `errc::invalid_argument` for
/// devices that are not there, `errc::unsupported` if requests are to be cut or joined and rows are not independent.
session_replicas open_replicas(actor_runtime& runtime, const model_ptr& m);

} // namespace troupe::actors
