// Other workers, from which this one pulls values that its chunks read. A link is opened when the first value is
// wanted, and again if it ends meanwhile.
//
// Any session may name any address, so few threads call peers, and peers that could not be reached come last. The
// number of links is limited: a link without pulls, or one that has brought nothing for as long as a peer may be away,
// is closed to make room for another.
//
// A peer that cannot be reached, or does not have what it should, is tried for a while before the pull fails: if it is
// gone, and perhaps another process is there in its place, the session finds out by itself, stops the chunks that wait
// here, and runs them elsewhere; an answer of ours that came first would end the run instead.
//
// A peer may keep its link and answer nothing. So each pull has a stop token, and its owner stops it at the latest when
// the session ends that it is for: else it would hold the session's memory as long as the peer likes.
#pragma once

#include "remote/values.hpp"

#include <chrono>
#include <stop_token>

namespace troupe::remote {

/// Opens a link to a worker as its peer; throws. Called on a thread of `peers`.
using peer_connector = std::function<link_ptr(const std::string& address)>;

/// Bytes that are pulled from a peer.
struct peer_pull {
  hash128 key;
  tensor blob;                             // takes them
  pull_done done;                          // is told how the pull has ended, once
  std::stop_token stop;                    // ends the pull by `errc::cancelled`
  piece_puller::progress on_progress = {}; // may still be called when `done` is
};

/// See the top of this file. Thread-safe.
class peers {
public:
  /// `patience`: how long a peer may be away.
  peers(peer_connector connect, std::chrono::milliseconds patience);
  /// As `close`.
  ~peers();
  peers(const peers&) = delete;
  peers& operator=(const peers&) = delete;

  /// Pulls what `address` offers.
  void pull(const std::string& address, peer_pull what);
  /// The same for what can be had elsewhere: the peer is not waited for. The failure is `errc::device_lost` if it
  /// cannot be reached or was lost, `errc::device_failed` if it does not have the bytes.
  void try_pull(const std::string& address, peer_pull what);

  /// Fails what has not been pulled, and what will be asked for; makes no connection after it has returned.
  void close();

private:
  struct state;
  const std::shared_ptr<state> state_; // the threads that connect hold it, too: they may let go of the owner of this
};

} // namespace troupe::remote
