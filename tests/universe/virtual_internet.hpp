// What hosts and ways are made of (virtual_network.hpp). One mutex guards all of it.
#pragma once

#include "universe/lying_host.hpp"
#include "universe/virtual_network.hpp"

#include <array>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

namespace troupe::universe {

using remote::frame;
using time_point = std::chrono::steady_clock::time_point;

struct place;

/// What is on its way to one end of a link.
struct item {
  time_point arrival;
  frame content;
  std::string end; // why the link has ended, in the place of a frame
};

/// One direction of a link.
struct direction {
  std::shared_ptr<place> to; // null once this end has heard of the link's end
  std::string from_host, to_host;
  std::deque<item> items;
  time_point free_at{}; // when all that was sent has left
  std::optional<remote::link_handler> handler;
  bool open = true; // for frames
};

struct cable {
  uint64_t number = 0;
  std::array<direction, 2> to; // to end 0, which called, and to end 1
};
using cable_ptr = std::shared_ptr<cable>;

/// A call on its way to a door, and the answer.
struct call {
  time_point arrival, answer_arrival;
  frame hello, welcome;
  cable_ptr over;
  bool given_up = false, answered = false;
  std::string refusal; // empty: welcome
};

/// A process on a host. Its threads and callers are woken for what concerns them alone: a universe has many.
struct place {
  std::string host;
  std::condition_variable due, called, answered; // something to deliver; a call; an answer to one
  bool gone = false, closing = false;
  actors::link_acceptor accept;
  std::deque<std::shared_ptr<call>> calls;
  std::map<uint64_t, cable_ptr> cables; // by number
  std::vector<std::thread> enders;      // each tells one handler of an end
  std::thread deliverer, door;
};
using place_ptr = std::shared_ptr<place>;

/// A way, and since when it is held.
struct known_way {
  way how;
  time_point held_since{};
};

struct virtual_internet::state : std::enable_shared_from_this<virtual_internet::state> {
  class cable_end;
  class virtual_network;

  std::mutex mutex; // guards the rest, and what it refers to
  std::vector<std::weak_ptr<place>> places;
  std::map<std::pair<std::string, std::string>, known_way> ways;
  std::map<std::string, place_ptr> listening; // by host
  std::map<uint64_t, std::weak_ptr<cable>> cables;
  std::map<std::string, lying_host> liars; // by host
  uint64_t last = 0;
  std::map<std::string, uint64_t> frames_come; // by host
  std::condition_variable frame_came;

  /// Something has changed that may concern every place.
  void wake_all() {
    std::erase_if(places, [](const auto& p) { return p.expired(); });
    for (const auto& each : places)
      if (const place_ptr p = each.lock()) {
        p->due.notify_all();
        p->called.notify_all();
        p->answered.notify_all();
      }
  }
  static void wake(const direction& d) {
    if (d.to)
      d.to->due.notify_all();
  }
  const known_way& way_to(const direction& d) { return ways[{d.from_host, d.to_host}]; }
  void send(cable& over, size_t from, frame f);
  void put_on_way(cable& over, direction& d, frame f);
  /// Returns what a host says in a call, or as its answer.
  frame said_by(const std::string& host, frame sound);
  void close(cable& over, size_t by);
  void close_locked(cable& over, size_t by);
  void cut(cable& over, const std::string& why);
  /// Cuts the links for whose ends' hosts `which` holds.
  using pair_of_hosts = std::function<bool(const std::string&, const std::string&)>;
  void cut_all(const pair_of_hosts& which, const std::string& why);
  actors::opened_link connect(const place_ptr& from, const std::string& host, frame hello,
                              std::chrono::milliseconds timeout);
  cable_ptr lay(const place_ptr& from, const place_ptr& to);
  remote::link_ptr end_of(const cable_ptr& over, size_t index);
  void deliver(const place_ptr& p);
  std::optional<time_point> next_time(const direction& d);
  void hand_over(const place_ptr& p, const cable_ptr& over, size_t end, std::unique_lock<std::mutex>& lock);
  void answer_calls(const place_ptr& p);
  void answer(const place_ptr& p, call& c, std::unique_lock<std::mutex>& lock);
  static void refuse_calls(place& p);
  void leave(const place_ptr& p);
};

} // namespace troupe::universe
