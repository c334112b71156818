// TCP sockets: what the network's parts share.
#pragma once

#include "actors/host_names.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

namespace troupe::actors {

using time_limit_point = std::chrono::steady_clock::time_point;

/// Owns a file descriptor; -1 is none.
class file_descriptor {
public:
  explicit file_descriptor(int fd = -1) : fd_(fd) {}
  ~file_descriptor();
  file_descriptor(file_descriptor&& other) noexcept : fd_(other.release()) {}
  file_descriptor& operator=(file_descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }

  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

private:
  int fd_;
};

/// Waits until `fd` is ready for `events` (poll's); returns false if that takes until `end`.
bool wait_for(int fd, short events, time_limit_point end);

/// Connects, trying each of the host's addresses. The socket does not block. Throws `errc::io` or `errc::timeout`,
/// naming the endpoint.
file_descriptor connect_to(const std::string& host, uint16_t port, time_limit_point end);

/// Listens; port 0 is any free one. Returns the socket, which does not block, and the port. Throws `errc::io`.
std::pair<file_descriptor, uint16_t> listen_at(const std::string& host, uint16_t port);

/// Accepts one connection, which does not block; none is waiting if the result is -1.
file_descriptor accept_one(int listening);

/// Returns the address, without the port, of a socket's other end; empty if there is none.
std::string peer_address(int fd);

/// Whether all addresses of a host are of this machine's loopback.
bool is_loopback(const std::string& host);

} // namespace troupe::actors
