// Links that transfers share: each transfer gets its max-min fair part of every link on its route.
//
// Rates follow from progressive filling (D. Bertsekas, R. Gallager: Data Networks, 2nd ed., 1992, section 6.5.2): all
// transfers grow alike until a link is full; those that cross it keep what they have, the others grow on. They change
// only when a transfer begins or ends, and only for transfers that share links with it, directly or through others.
#pragma once

#include "sim/event_queue.hpp"

#include <cstddef>
#include <limits>
#include <map>
#include <span>
#include <string>

namespace troupe::sim {

using link_index = uint32_t;
using transfer_id = uint64_t;

/// See the top of this file. Not thread-safe.
class shared_links {
public:
  explicit shared_links(event_queue& events) : events_(events) {}

  /// Adds a link; `bytes_per_s` is above 0.
  link_index add(std::string name, double bytes_per_s);

  /// Moves bytes over links, no faster than `most_bytes_per_s`, and calls `done` when all are through, never before the
  /// return. A link that is named twice carries them twice.
  transfer_id start(double bytes, std::span<const link_index> route, double most_bytes_per_s, event_queue::action done);
  /// Forgets a transfer; nothing if it has ended.
  void cancel(transfer_id transfer);

  // -- what has been moved
  /// Forgets what links have carried so far; nothing may be under way.
  void begin_to_count() {
    for (link& l : links_)
      l.bytes = l.busy = 0;
  }
  size_t size() const { return links_.size(); }
  const std::string& name(link_index l) const { return links_[l].name; }
  double bytes(link_index l) const { return links_[l].bytes; }
  /// Returns the seconds in which some transfer was under way over a link.
  double busy(link_index l) const { return links_[l].busy; }

private:
  struct link {
    std::string name;
    double bytes_per_s = std::numeric_limits<double>::infinity();
    std::vector<transfer_id> transfers; // under way, ascending
    double bytes = 0, busy = 0;
    double busy_since = 0;
    // scratch of `share`
    double left = 0;
    size_t open = 0;
    bool reached = false;
  };
  struct transfer {
    std::vector<link_index> route;
    double bytes = 0; // left at `since`
    double rate = 0, most = 0;
    double since = 0;
    uint64_t version = 0; // of its end, as scheduled last
    event_queue::action done;
    bool reached = false, fixed = false; // scratch of `share`
  };

  /// Shares the links anew that transfers on `route` concern.
  void share(std::span<const link_index> route);
  void reach(std::span<const link_index> route);
  void fill();
  void set_rate(transfer_id id, transfer& t, double rate);
  void finish(transfer_id id);
  void leave(transfer_id id, const transfer& t);

  event_queue& events_;
  std::vector<link> links_;
  std::map<transfer_id, transfer> transfers_; // under way
  transfer_id started_ = 0;
  std::vector<link_index> reached_links_;                  // scratch
  std::vector<std::pair<transfer_id, transfer*>> reached_; // scratch
};

} // namespace troupe::sim
