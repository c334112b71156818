// Links to other hosts (src/remote/link.hpp). Over TCP, this is the only part that knows CAF's middleman and TLS: a
// network has an actor system of its own for each direction; in it every link has an actor, which monitors the one of
// the other end. Frames are messages between the two. CAF gives routing, order and monitors; TLS and the sockets are
// ours (network/README.md says why).
#pragma once

#include "remote/link.hpp"
#include "troupe/options.hpp"

#include <chrono>
#include <functional>
#include <memory>

namespace troupe::actors {

/// What a caller gets.
struct opened_link {
  remote::link_ptr link;
  remote::frame welcome;
  remote::measuring_effort effort = {}; // that measuring the link is worth
};

/// Asked for each caller, one at a time, on a thread of its own: returns the welcome, or throws `error`, whose text
/// refuses the caller. It may use the link already.
using link_acceptor = std::function<remote::frame(const remote::frame& hello, const remote::link_ptr& link)>;

/// How a process reaches others. Thread-safe.
class network {
public:
  /// A silent host is lost after this long.
  static constexpr std::chrono::milliseconds silence_limit{1000};

  network() = default;
  /// Ends all links. Takes no longer than a few seconds, whatever other hosts and handlers do.
  virtual ~network() = default;
  network(const network&) = delete;
  network& operator=(const network&) = delete;

  /// Listens; port 0 is any free one. Once. Returns the port; throws `errc::io`.
  virtual uint16_t listen(const std::string& host, uint16_t port, link_acceptor accept) = 0;

  /// Opens a link. Throws `errc::timeout`, or `errc::io` with what is wrong: the host cannot be reached, it or we have
  /// no certificate that the other accepts, or the text by which it refuses.
  virtual opened_link connect(const std::string& host, uint16_t port, remote::frame hello,
                              std::chrono::milliseconds timeout) = 0;

  /// Whether what goes to or from this host may be read and changed by others: insecure, and not loopback.
  virtual bool exposes(const std::string& host) const = 0;
};

/// The network of sockets, with TLS or without.
class tcp_network final : public network {
public:
  /// Throws `errc::invalid_argument` if the host_credentials are missing, unreadable, expired, or do not belong
  /// together.
  explicit tcp_network(const host_credentials& who);
  ~tcp_network() override;

  uint16_t listen(const std::string& host, uint16_t port, link_acceptor accept) override;
  opened_link connect(const std::string& host, uint16_t port, remote::frame hello,
                      std::chrono::milliseconds timeout) override;
  bool exposes(const std::string& host) const override;

private:
  struct state;
  std::unique_ptr<state> state_;
};

/// Makes the network of a process that is `who`. Throws as the constructor of `tcp_network`.
using network_maker = std::function<std::unique_ptr<network>(const host_credentials& who)>;

std::unique_ptr<network> make_tcp_network(const host_credentials& who);

} // namespace troupe::actors
