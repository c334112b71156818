// The door to the street: accepts connections and hands on those that have shaken hands. A connection that has not has
// no name yet: such are limited in number and age, so that strangers can neither use up descriptors nor keep members
// out.
#pragma once

#include "actors/network/channel.hpp"

#include <functional>
#include <list>
#include <thread>

namespace troupe::actors {

/// Has a thread of its own.
class gate {
public:
  static constexpr size_t max_unshaken = 128;

  /// `admit` gets, on the gate's thread, each channel that has shaken hands.
  gate(file_descriptor listening, tls_context tls, std::function<void(channel)> admit,
       std::chrono::milliseconds max_age = std::chrono::seconds(3));
  /// Ends listening; no call of `admit` is under way afterwards.
  ~gate();

private:
  struct visitor {
    channel at;
    time_limit_point end;
    progress waits_for = progress::wants_input;
  };

  void work();
  void accept_some();
  void go_on(std::list<visitor>::iterator one);

  file_descriptor listening_, wake_;
  tls_context tls_;
  std::function<void(channel)> admit_;
  std::chrono::milliseconds max_age_;
  std::list<visitor> visitors_; // oldest first
  std::thread thread_;          // last: it uses the rest
};

} // namespace troupe::actors
