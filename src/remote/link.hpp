// A connection to another host, as the rest of this folder sees it: frames of bytes, in order, until it ends.
// actors/network carries the frames; a test joins two ends in memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe::remote {

/// One message, encoded (messages.hpp).
using frame = std::vector<uint8_t>;

/// Longest frame that a link carries; a longer one ends it.
inline constexpr size_t max_frame_bytes = size_t{16} << 20;

/// What a link reports, one call at a time.
struct link_handler {
  /// On a thread that other links share: must not wait for anything. The frame is the link's again after the return.
  std::function<void(const frame&)> on_frame;
  /// Once, last: why the link has ended, in words for a person. On a thread of its own.
  std::function<void(const std::string&)> on_closed;
};

/// One end. Thread-safe.
class link {
public:
  virtual ~link() = default;

  /// Sends a frame. Never blocks; after the end it does nothing.
  virtual void send(frame f) = 0;
  /// Delivers from now on, first what has come already. To be called once.
  virtual void receive(link_handler handler) = 0;
  /// Ends the link; the handler of either end is told.
  virtual void close() = 0;
  /// Returns which host is at the other end, as far as the network knows: its certificate's name, else its address;
  /// empty if it does not.
  virtual std::string other_host() const { return {}; }
};

using link_ptr = std::shared_ptr<link>;

/// How much a measurement of a link may take: its loads grow until one takes `telling_s`, and as many round trips as
/// `telling_trips`, or has `last_load` bytes; `repeats` times that, of which the fastest counts.
struct measuring_effort {
  double telling_s = 0.02;
  double telling_trips = 4;
  size_t last_load = size_t{4} << 20;
  int repeats = 3;
};

} // namespace troupe::remote
