// Links to other hosts (src/remote/link.hpp), over TCP: the only part that knows CAF's middleman and TLS. A network has
// an actor system of its own for each direction; in it every link has an actor, which monitors the one of the other
// end. Frames are messages between the two. CAF gives routing, order and monitors; TLS and the sockets are ours
// (network/README.md says why).
#pragma once

#include "remote/link.hpp"
#include "troupe/options.hpp"

#include <chrono>

namespace troupe::actors {

/// What a caller gets.
struct opened_link {
  remote::link_ptr link;
  remote::frame welcome;
};

/// Asked for each caller, one at a time, on a thread of its own: returns the welcome, or throws `error`, whose text
/// refuses the caller. It may use the link already.
using link_acceptor = std::function<remote::frame(const remote::frame& hello, const remote::link_ptr& link)>;

/// Thread-safe.
class network {
public:
  /// A silent host is lost after this long.
  static constexpr std::chrono::milliseconds silence_limit{1000};

  /// Throws `errc::invalid_argument` if the host_credentials are missing, unreadable, expired, or do not belong
  /// together.
  explicit network(const host_credentials& who);
  /// Ends all links. Takes no longer than a few seconds, whatever other hosts and handlers do.
  ~network();
  network(const network&) = delete;
  network& operator=(const network&) = delete;

  /// Listens; port 0 is any free one. Once. Returns the port; throws `errc::io`.
  uint16_t listen(const std::string& host, uint16_t port, link_acceptor accept);

  /// Opens a link. Throws `errc::timeout`, or `errc::io` with what is wrong: the host cannot be reached, it or we have
  /// no certificate that the other accepts, or the text by which it refuses.
  opened_link connect(const std::string& host, uint16_t port, remote::frame hello, std::chrono::milliseconds timeout);

  /// Whether what goes to or from this host may be read and changed by others: insecure, and not loopback.
  bool exposes(const std::string& host) const;

private:
  struct state;
  std::unique_ptr<state> state_;
};

} // namespace troupe::actors
