// A connection by which a test sends any bytes to a worker: plain TCP or TLS, honest or not. And the bytes that honest
// ones send, recorded.
#pragma once

#include "actors/network/channel.hpp"

#include <random>
#include <span>
#include <string>
#include <vector>

namespace troupe::test {

using bytes = std::vector<uint8_t>;

/// Returns a TLS context that checks nothing; without files it shows no certificate.
actors::tls_context careless_context(const std::string& certificate = "", const std::string& key = "");

/// Blocks, never longer than its limits.
class hostile_line {
public:
  /// Connects to the loopback. Throws `errc::io` or `errc::timeout`.
  explicit hostile_line(uint16_t port, const actors::tls_context& tls = nullptr);
  explicit hostile_line(actors::channel at) : at_(std::move(at)) {}

  int fd() const { return at_.fd(); }
  /// Shakes hands and greets; false if the other side ends the connection instead.
  bool enter();
  /// False if the other side has ended the connection.
  bool say(std::span<const uint8_t> what);
  /// Appends the bytes that come within `limit`; false if the other side has ended the connection.
  bool hear(bytes& to, std::chrono::milliseconds limit);
  /// Sends no more and waits until the other side ends the connection; false if that takes over 10 s.
  bool await_end();

private:
  actors::channel at_;
};

/// Returns how a client's side of TLS begins.
bytes client_hello(const actors::tls_context& tls);

/// Returns `from` with a few bytes changed, cut, doubled, or set to values of invalid lengths.
bytes mutated(bytes from, std::mt19937_64& random);
bytes random_bytes(size_t size, std::mt19937_64& random);

} // namespace troupe::test
