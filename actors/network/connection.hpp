// Connections as CAF's middleman sees them, and the watch over them.
#pragma once

#include "actors/network/channel.hpp"
#include "actors/network/guard.hpp"

#include <caf/io/network/default_multiplexer.hpp>
#include <caf/io/scribe.hpp>

#include <atomic>
#include <mutex>

namespace troupe::actors {

/// The connections of one actor system that are open. CAF's own watch looks at whole messages, so it would cut a slow
/// connection in the middle of a long one; this one looks at bytes. Thread-safe.
class open_connections {
public:
  using clock = std::chrono::steady_clock;

  struct entry {
    int fd = -1;
    std::string who;                    // the other side's certificate, by its hash
    std::string host;                   // whose it is, see `channel::other_host`
    std::atomic<clock::duration> heard; // when a byte came last
    std::atomic<bool> ended = false;    // nothing more is read
    caf::node_id node;                  // that the other side says it is; guarded by the mutex

    /// Only as long as the socket is there.
    void end();
  };

  size_t size() const;
  /// Returns how many are to this host (`channel::other_host`).
  size_t size(const std::string& host) const;
  /// Returns the host whose node it is; empty if no connection is to it.
  std::string host_of(const caf::node_id& node) const;
  void add(const std::shared_ptr<entry>& one);
  /// From now on no thread touches the socket here.
  void remove(const std::shared_ptr<entry>& one);
  /// Notes that the other side of `one` is this node. False if the name is another's: made for another certificate, or
  /// that of a connection by another certificate.
  bool name(entry& one, const caf::node_id& node);
  /// Ends those of which nothing has been heard for `limit`, and nothing waits to be read.
  void end_silent(clock::duration limit);
  void end_all();

private:
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<entry>> all_;
};

/// Returns a connection for CAF's broker; the channel has shaken hands. What may be said on it is what a `guard` with
/// this view admits, and the other side may be no node that somebody else is.
caf::io::scribe_ptr make_scribe(caf::io::network::default_multiplexer& multiplexer, channel at,
                                open_connections& connections, guard::view view);

} // namespace troupe::actors
