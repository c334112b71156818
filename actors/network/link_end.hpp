// A link's two ends are actors: a frame is a message from one to the other, each monitors the other. The door is what
// callers reach first: they show it their hello and their end, and get the welcome and the other end.
#pragma once

#include "actors/network.hpp"
#include "actors/network/guard.hpp"

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/deserializer.hpp>
#include <caf/serializer.hpp>
#include <caf/typed_actor.hpp>

#include <map>
#include <mutex>

namespace troupe::actors {

/// A frame on its way.
struct frame_message {
  remote::frame bytes;
};
caf::error inspect(caf::serializer& sink, frame_message& x);
/// Refuses a length over the limit, or more than has come, before it allocates.
caf::error inspect(caf::deserializer& source, frame_message& x);
std::string to_string(const frame_message& x);

/// A caller's hello and its end → whether it is taken (1) or not (0), the welcome or the reason why not, and the end
/// here. CAF compares this signature when hosts connect, before any message of ours: it must never change.
using door_actor =
    caf::typed_actor<caf::replies_to<frame_message, caf::actor>::with<uint8_t, frame_message, caf::actor>>;

/// What a link and its actor share.
struct shared_end;

/// One end, not yet a link: it has no other end.
struct link_end {
  caf::actor actor;
  std::shared_ptr<shared_end> shared;
};
/// Returns the link that `end` is, to the other host's `peer`; `host`: see `remote::link::other_host`.
remote::link_ptr make_link(const link_end& end, const caf::actor& peer, std::string host = {});

/// Returns which host a node is that has a connection to this one; empty if it has none.
using host_finder = std::function<std::string(const caf::node_id&)>;

/// What one node may have here at a time: a host's session has one link, and calls once for it.
struct node_limits {
  static constexpr size_t links = 256;
  static constexpr size_t calls = 64; // at the door that have no answer; one more ends the connection
};

/// The ends of an actor system, and what each other node has of them. Thread-safe.
class link_ends {
public:
  explicit link_ends(caf::actor_system& system) : system_(system) {}

  /// Spawns an end of a link to that node.
  link_end spawn(const caf::node_id& other);
  /// Returns how many ends of links to that node there are.
  size_t count(const caf::node_id& other) const;
  /// What this actor is for that node.
  receiver receiver_of(caf::actor_id actor, const caf::node_id& from) const;
  /// Notes that the node calls at the door; false if it has called too often.
  bool begin_call(const caf::node_id& caller);
  void end_call(const caf::node_id& caller);
  /// Spawns the door; `who` tells whose the links are.
  door_actor spawn_door(link_acceptor accept, host_finder who);
  /// Ends them all.
  void end_all();

private:
  struct known_end {
    caf::actor_addr actor;
    caf::node_id other;
  };
  /// Ends that end note it here, perhaps when the rest is gone.
  struct book {
    mutable std::mutex mutex;
    caf::actor_id door = caf::invalid_actor_id;
    std::map<caf::actor_id, known_end> ends;
    std::map<caf::node_id, size_t> links, calls; // by node, if there are any
  };

  caf::actor_system& system_;
  const std::shared_ptr<book> book_ = std::make_shared<book>();
};

} // namespace troupe::actors
