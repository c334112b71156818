// A worker: this process's devices, lent to the sessions of other hosts (remote/host_service.hpp).
#pragma once

#include "actors/actor_runtime.hpp"
#include "actors/network.hpp"
#include "remote/host_service.hpp"

namespace troupe::actors {

struct worker_options {
  engine_options devices; // which are lent, with how much memory
  engine_hooks hooks;
  host_credentials who;
  std::string host = "0.0.0.0";
  uint16_t port = 0; // any free one
  remote::service_options service;
};

/// See the top of this file. Lives until it is destroyed.
class worker {
public:
  /// Opens the devices and listens. Throws what opening devices and `network` throw.
  explicit worker(worker_options options);
  ~worker();
  worker(const worker&) = delete;
  worker& operator=(const worker&) = delete;

  uint16_t port() const { return port_; }
  std::vector<device_info> devices() const;
  size_t sessions() const { return service_->sessions(); }
  const remote::host_service& service() const { return *service_; }
  /// Whether what goes over the network may be read and changed by others.
  bool is_exposed() const { return exposed_; }

  /// See `remote::host_service::drain`.
  bool drain(std::chrono::milliseconds limit) { return service_->drain(limit); }

private:
  remote::link_ptr connect_peer(const std::string& address);

  worker_options options_;
  actor_runtime runtime_;
  std::unique_ptr<network> network_;
  std::shared_ptr<remote::host_service> service_;
  bool exposed_ = false;
  uint16_t port_ = 0;
};

} // namespace troupe::actors
