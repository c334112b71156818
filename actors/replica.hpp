// A replica of a session: a coordinator whose plans use some of the engine's devices.
#pragma once

#include "actors/device_actor.hpp"
#include "run/session_plans.hpp"
#include "strategy/prepare.hpp"

#include <caf/send.hpp>

namespace troupe::actors {

/// A coordinator; once it has no owner, it ends after its last run.
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

/// The devices of an engine as a session that is opened now sees them.
struct devices_at_hand {
  explicit devices_at_hand(const actor_runtime& runtime);

  /// Returns them as a session with these options sees them. Throws `errc::invalid_argument` for devices that are not
  /// there.
  devices_of_session for_session(const session_options& options) const;

  device_list list;
  std::vector<device_info> infos; // of all in the list
  std::vector<size_t> lost;       // those, or those that leave
};

/// Returns the replicas that options ask for; without a strategy one. Throws `errc::invalid_argument` for devices that
/// are not there.
std::vector<replica_set> replicas_for(const actor_runtime& runtime, const session_options& options);

/// Returns how a machine feeds replicas that are as fast as predicted; see `machine_for`.
machine_options predicted_machine(strategy how, const stream_options& options, std::span<const replica> replicas,
                                  std::shared_ptr<const strategy_library> plugin = {});

/// Opens replicas of a model. Throws what `prepare_replicas` throws.
session_replicas open_replicas(actor_runtime& runtime, const model_ptr& m, const std::vector<replica_set>& sets,
                               session_plans::ahead ahead = {});

} // namespace troupe::actors
