// The other hosts of an engine: connects to their workers, lets their devices join, and takes them out when the link
// ends. A host that was lost is called again and again, one that left in order less often; when it answers, its devices
// join as new ones.
#pragma once

#include "actors/host_names.hpp"
#include "actors/network.hpp"
#include "cost/profile_file.hpp"
#include "remote/host_client.hpp"

#include <thread>

namespace troupe::actors {

class actor_runtime;

/// See the top of this file. Thread-safe.
class remote_hosts {
public:
  /// `runtime` lives longer.
  remote_hosts(actor_runtime& runtime, std::unique_ptr<network> links);
  /// Ends all links.
  ~remote_hosts();
  remote_hosts(const remote_hosts&) = delete;
  remote_hosts& operator=(const remote_hosts&) = delete;

  /// Connects to a host; its devices, or those that `wanted` names ("NAME/cpu"), if any, have joined when this returns.
  /// Throws what `network::connect` throws, and `errc::invalid_argument` if its name is taken.
  void add(const host_address& host, const std::vector<std::string>& wanted);

  std::vector<host_summary> summary() const;
  remote::host_activity activity(const std::string& name) const;
  /// Measures the link to a host at length. Throws `errc::device_lost` if it is lost, `errc::timeout`.
  measured_link calibrate(const std::string& name) const;

private:
  struct known_host {
    host_address at;
    std::vector<std::string> wanted;             // empty: all
    std::shared_ptr<remote::host_client> client; // null while there is no link
    remote::link_figures figures;                // of the last link
    std::string version;                         // of troupe there
    std::string problem;                         // why it cannot be connected to, or is about to go
    bool leaves = false;                         // in order; till it is there again
    std::chrono::steady_clock::time_point next_call = {};
  };

  /// Opens a link and lets the host's devices join.
  void connect(const host_address& host, const std::vector<std::string>& wanted, std::chrono::milliseconds timeout);
  void let_leave(const remote::host_client& client, const std::string& name, const std::string& why,
                 const std::shared_ptr<const void>& need);
  void lose(const remote::host_client* client, const std::string& why);
  void call_again();

  actor_runtime& runtime_;
  const std::shared_ptr<remote::outbox> offers_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool closing_ = false;
  std::vector<known_host> hosts_;
  std::unique_ptr<network> network_; // ends before what its handlers use
  std::thread calling_;              // last: it uses all of the above
};

} // namespace troupe::actors
