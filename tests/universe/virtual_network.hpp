// Hosts and the ways between them, in one process: what `actors::network` is over TCP, over queues in virtual time,
// with troubles that a test makes.
//
// Each network has two threads, as a process has: one delivers frames, one after the other, for all its links; one
// answers calls. Like TCP, a way keeps the order of each link's frames, and loses none unless the link ends.
#pragma once

#include "actors/network.hpp"
#include "universe/story.hpp"

#include <functional>
#include <map>
#include <set>

namespace troupe::universe {

/// How a way from one host to another is.
struct way {
  std::chrono::nanoseconds delay{100'000};
  double bytes_per_second = 1e9;
  bool held = false; // nothing gets through, until it does again
};

/// See the top of this file. Thread-safe.
class virtual_internet {
public:
  virtual_internet();
  ~virtual_internet();
  virtual_internet(const virtual_internet&) = delete;
  virtual_internet& operator=(const virtual_internet&) = delete;

  /// Returns the network of a process that begins on a host. A host has one that listens at a time.
  std::unique_ptr<actors::network> join(const std::string& host);

  /// From now on. Ways begin as `way` says.
  void set_way(const std::string& from, const std::string& to, const way& how);
  /// Ends all links between two hosts; frames on their way are lost.
  void cut(const std::string& a, const std::string& b);
  /// Ends all links of a host and refuses all calls to it, as if its process were gone. What its network still does
  /// has no effect.
  void kill(const std::string& host);
  /// From now on, what a host sends is what `lying_host` makes of it.
  void let_lie(const std::string& host, uint64_t seed, story& tale);
  /// Waits until as many more frames have come to a host, and no longer than `limit`.
  void await_frames(const std::string& host, uint64_t count, std::chrono::milliseconds limit);

private:
  struct state;
  const std::shared_ptr<state> state_;
};

} // namespace troupe::universe
