// The actor system of one engine: its settings, and an end that never hangs.
#pragma once

#include "actors/completions.hpp"
#include "actors/coordinator.hpp"
#include "actors/host.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

namespace troupe::actors {

/// Thread-safe. Shared by an engine and its sessions: the actor system outlives every handle to one of its actors.
class actor_runtime {
public:
  actor_runtime(const engine_options& options, const engine_hooks& hooks);
  ~actor_runtime();

  const host& devices() const { return *host_; }
  /// Where callbacks run.
  const std::shared_ptr<completions>& callbacks() const { return callbacks_; }

  /// Spawns a session's coordinator; throws `errc::cancelled` if the runtime is closed.
  coordinator_ref spawn_coordinator(std::shared_ptr<session_plans> plans);

  /// Values on devices, outside of runs: see `host`. Throw `errc::cancelled` if the runtime is closed.
  tensor fetch(const device_tensor& value);
  device_tensor put(const tensor& value, const std::string& device);

  /// Ends all actors: runs in flight end with errc::cancelled. Waits for them, but no longer than a device may be silent:
  /// an actor that hangs in a driver is abandoned with its system. Waits for callbacks too, unless called by one.
  void close();

private:
  bool await_actors() const;
  void check_open();

  engine_options options_;
  std::unique_ptr<caf::actor_system_config> config_;
  std::unique_ptr<caf::actor_system> system_;
  std::unique_ptr<host> host_;
  const std::shared_ptr<completions> callbacks_ = std::make_shared<completions>();
  std::mutex mutex_; // guards coordinators_, closed_
  std::vector<caf::actor_addr> coordinators_;
  bool closed_ = false;
};

} // namespace troupe::actors
