// The actor system of one engine: its settings, and an end that never hangs.
#pragma once

#include "actors/completions.hpp"
#include "actors/coordinator.hpp"
#include "actors/host.hpp"
#include "actors/remote_hosts.hpp"
#include "actors/stream_actor.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

namespace troupe::actors {

/// Thread-safe. Shared by an engine and its sessions: the actor system outlives every handle to one of its actors.
class actor_runtime {
public:
  actor_runtime(const engine_options& options, const engine_hooks& hooks);
  ~actor_runtime();

  const engine_options& options() const { return options_; }
  const host& devices() const { return *host_; }
  caf::actor_system& system() { return *system_; }
  /// Where callbacks run.
  const std::shared_ptr<completions>& callbacks() const { return callbacks_; }

  /// Spawns the coordinator of a session that was planned for `devices`; those that have joined since join it too.
  /// Throws `errc::cancelled` if the runtime is closed.
  coordinator_ref spawn_coordinator(const device_list& devices, std::shared_ptr<session_plans> plans);

  /// Spawns a session's queue. Throws `errc::cancelled` if the runtime is closed.
  stream_ref spawn_stream(stream_parts parts);

  /// Connects to a worker; see `remote_hosts::add`.
  void add_host(const host_address& host, const std::vector<std::string>& wanted = {});
  std::vector<host_summary> other_hosts() const;
  remote::host_activity activity_of(const std::string& host) const;
  /// Measures the link to a host at length; see `remote_hosts`.
  measured_link calibrate_link(const std::string& host) const;

  /// Opens further devices, all or none: living sessions use them from their next runs on. Throws as `host::open`, and
  /// `errc::cancelled` if the runtime is closed.
  void add_devices(const std::vector<device_factory>& makes, host::threading where);
  /// The devices for which `which` holds leave in order: sessions begin nothing on them, and hold `need` until they
  /// need them no more.
  void let_leave(const std::function<bool(const device_info&)>& which, const std::string& why,
                 const std::shared_ptr<const void>& need);
  /// Sessions of other processes lack memory of a device; see `shared_ledger::claim`.
  void claim_memory(const device_info& device, int64_t bytes);
  /// See `host::lose`.
  void lose_devices(const std::function<bool(const device_info&)>& which, const std::string& why);

  /// Values on devices, outside of runs: see `host`. Throw `errc::cancelled` if the runtime is closed.
  tensor fetch(const device_tensor& value);
  device_tensor put(const tensor& value, const std::string& device);

  /// Ends all actors: runs in flight end with errc::cancelled. Waits for them, but no longer than a device may be
  /// silent: an actor that hangs in a driver is abandoned with its system. Waits for callbacks too, unless called by
  /// one.
  void close();

private:
  /// Returns what records a session; null if that is not wanted. Throws `errc::io`.
  std::unique_ptr<recording::recorder> make_recorder(const std::vector<device_handle>& devices,
                                                     const std::shared_ptr<session_plans>& plans, bool follows_speeds);
  bool await_actors() const;
  void check_open();
  void open_all(const engine_hooks& hooks);
  void announce(const std::vector<device_handle>& joined);

  engine_options options_;
  const network_maker make_network_;
  std::unique_ptr<caf::actor_system_config> config_;
  std::unique_ptr<caf::actor_system> system_;
  std::unique_ptr<host> host_;
  const std::shared_ptr<completions> callbacks_ = std::make_shared<completions>();
  mutable std::mutex connecting_;       // guards that `hosts_` is made once
  std::unique_ptr<remote_hosts> hosts_; // null before the first host
  std::mutex joining_;                  // held while devices are opened, so that they join one after the other
  std::mutex mutex_; // guards coordinators_, streams_, closed_, and that all of them hear of devices in the same order
  std::vector<caf::actor_addr> coordinators_, streams_;
  bool closed_ = false;
  size_t recordings_ = 0; // so far; guarded by mutex_
};

} // namespace troupe::actors
