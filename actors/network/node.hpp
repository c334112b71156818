// An actor system that is a node of CAF's network, and its end.
#pragma once

#include "actors/network/connection.hpp"
#include "actors/network/link_end.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

namespace troupe::actors {

/// Calls or is called, never both: two nodes that call each other at once would each drop the other's connection as
/// redundant.
class node {
public:
  /// `certificate`: the owner's, by its hash; empty without TLS.
  explicit node(const std::string& certificate);
  /// Ends all links; abandons the actor system if a handler hangs.
  ~node();
  node(const node&) = delete;
  node& operator=(const node&) = delete;

  link_ends& ends() { return *parts_.ends; }
  /// Returns what tells whose a node is that has a connection to this one.
  host_finder finder();
  const open_connections& connections() const { return *parts_.connections; }

  /// Takes over a connection of which the other side calls, and shows it the door.
  void be_called(channel at, uint16_t port, const door_actor& door);
  /// Takes over a connection by which we call; returns the door of the other side. Throws `errc::io` or
  /// `errc::timeout`, with `where`.
  door_actor call(channel at, uint16_t port, const std::string& where, time_limit_point end);
  /// Whether the connection to a door is still there.
  static bool reaches(const door_actor& door);
  /// Shows the other side's door a hello.
  opened_link enter(const door_actor& door, remote::frame hello, const std::string& where, time_limit_point end);

  /// What remains of a system that does not end.
  struct parts {
    std::unique_ptr<caf::actor_system_config> config;
    std::unique_ptr<open_connections> connections;
    std::unique_ptr<caf::actor_system> system;
    std::unique_ptr<link_ends> ends;
  };

private:
  caf::actor_system& system() { return *parts_.system; }
  caf::io::scribe_ptr scribe_of(channel at, bool calling);

  parts parts_;
  caf::actor broker_;
  caf::actor watch_;
};

} // namespace troupe::actors
