// Hosts on this machine: as root, a network namespace for each, joined by veth pairs and a bridge; otherwise all share
// the loopback.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::test {

/// Where a host is: its address, and its network namespace.
struct host_place {
  std::string address = "127.0.0.1";
  int space = -1; // descriptor of the namespace; -1: this process's
};

/// See the top of this file. To be made before the process has threads: it moves to a new namespace, too, so that all
/// of it is gone when the process and its children have ended, however they do.
class host_network {
public:
  explicit host_network(int hosts);
  ~host_network();
  host_network(const host_network&) = delete;
  host_network& operator=(const host_network&) = delete;

  /// Whether each host has a namespace.
  bool is_separate() const { return why_not_.empty(); }
  /// Why not; empty if so.
  const std::string& why_not() const { return why_not_; }
  /// Returns this process's address, which all hosts reach.
  const std::string& own_address() const { return own_; }
  const host_place& place(int host) const { return places_.at(static_cast<size_t>(host)); }

private:
  std::string own_ = "127.0.0.1", why_not_;
  std::vector<host_place> places_;
};

} // namespace troupe::test
