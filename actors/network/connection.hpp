// Connections as CAF's middleman sees them, and the watch over them.
#pragma once

#include "actors/network/channel.hpp"

#include <caf/io/network/default_multiplexer.hpp>
#include <caf/io/scribe.hpp>

#include <atomic>
#include <mutex>

namespace troupe::actors {

/// The connections of one actor system that are open. CAF's own watch looks at whole messages, so it would cut a slow connection in the
/// middle of a long one; this one looks at bytes. Thread-safe.
class open_connections {
public:
  using clock = std::chrono::steady_clock;

  struct entry {
    int fd = -1;
    std::atomic<clock::duration> heard; // when a byte came last
  };

  size_t size() const;
  void add(const std::shared_ptr<entry>& one);
  /// From now on nobody touches the socket here.
  void remove(const std::shared_ptr<entry>& one);
  /// Ends those of which nothing has been heard for `limit`, and nothing waits to be read.
  void end_silent(clock::duration limit);
  void end_all();

private:
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<entry>> all_;
};

/// Returns a connection for CAF's broker; the channel has shaken hands.
caf::io::scribe_ptr make_scribe(caf::io::network::default_multiplexer& multiplexer, channel at,
                                open_connections& connections);

} // namespace troupe::actors
