// A connection's bytes: a socket, with TLS or without. Nothing here blocks.
#pragma once

#include "actors/network.hpp"
#include "actors/network/sockets.hpp"

struct ssl_ctx_st;
struct ssl_st;

namespace troupe::actors {

/// What TLS connections of one `network` share; null for plain TCP.
using tls_context = std::shared_ptr<ssl_ctx_st>;

/// Reads and checks credentials: TLS 1.3, both sides with a certificate of the cluster's CA. Null if they are insecure.
/// Throws `errc::invalid_argument` if they are missing, unreadable, expired, or do not belong together.
tls_context make_tls_context(const host_credentials& c);

/// Returns our own certificate, by its hash, as the other side sees it (`channel::peer`); empty without TLS.
std::string own_certificate(const tls_context& tls);

/// What came of an attempt.
enum class progress : unsigned char { done, wants_input, wants_output, ended };

/// Records between OpenSSL and a socket.
struct record_buffer;

/// Used by one thread at a time.
class channel {
public:
  channel(file_descriptor socket, const tls_context& tls, bool accepting);
  channel(channel&&) noexcept;
  channel& operator=(channel&&) noexcept;
  ~channel();

  int fd() const { return fd_; }
  /// Gives the socket away, which must stay open as long as the channel is used.
  int release_socket();

  /// Goes on with TLS's handshake and the exchange of greetings; `done` once both have happened.
  progress shake_hands();
  /// Moves at most `size` bytes, at least one if `done`; `moved` says how many. After `wants_output` the next `write`
  /// begins with the same bytes.
  progress read(void* to, size_t size, size_t& moved);
  progress write(const void* from, size_t size, size_t& moved);
  /// At least the bytes that have been received but not read. No poll tells of them.
  size_t pending() const;

  /// Whose certificate the other side has shown, by its hash; empty without TLS.
  std::string peer() const;
  /// After `shake_hands` said `done`: the common name of the other side's certificate; without TLS its address.
  std::string other_host() const;

  /// After `shake_hands` said `ended`: what is wrong with the other side, in words.
  std::string problem() const;

private:
  progress progress_of(int result);
  progress greet();

  file_descriptor socket_;
  std::unique_ptr<record_buffer> records_; // with TLS
  std::unique_ptr<ssl_st, void (*)(ssl_st*)> ssl_;
  int fd_;
  bool accepting_, shaken_ = false;
  size_t sent_ = 0, received_ = 0; // of the greetings
  size_t taken_ = 0;               // bytes of the caller that TLS has, but the socket not yet
  std::string heard_;              // of the other's greeting
  long verified_ = 0;              // OpenSSL's verdict on its certificate
  unsigned long error_ = 0;        // OpenSSL's last error
};

} // namespace troupe::actors
