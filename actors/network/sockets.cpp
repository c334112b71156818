#include "actors/network/sockets.hpp"

#include "base/error.hpp"

#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

namespace troupe::actors {
namespace {

constexpr int waiting_connections = 256; // that the system keeps for us

using address_list = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

/// Returns the host's addresses; throws `errc::io`.
address_list resolve(const std::string& host, uint16_t port, int flags) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* found = nullptr;
  const int problem = getaddrinfo(host.empty() ? nullptr : host.c_str(), std::to_string(port).c_str(), &wanted, &found);
  if (problem != 0)
    fail(errc::io, "host '{}' has no address: {}; check its spelling, or write its IP address", host,
         problem == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(problem));
  return {found, &freeaddrinfo};
}

file_descriptor open_socket(const addrinfo& address) {
  file_descriptor fd(socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int yes = 1;
  setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  return fd;
}

/// Returns 0, or the errno of a connection that failed; ETIMEDOUT at `end`.
int finish_connect(int fd, const addrinfo& address, time_limit_point end) {
  if (connect(fd, address.ai_addr, address.ai_addrlen) == 0)
    return 0;
  if (errno != EINPROGRESS)
    return errno;
  if (!wait_for(fd, POLLOUT, end))
    return ETIMEDOUT;
  int problem = 0;
  socklen_t size = sizeof problem;
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &size);
  return problem;
}

uint16_t port_of(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  const uint16_t port = address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                                      : reinterpret_cast<sockaddr_in*>(&address)->sin_port;
  return ntohs(port);
}

} // namespace

file_descriptor::~file_descriptor() {
  if (fd_ >= 0)
    close(fd_);
}

bool wait_for(int fd, short events, time_limit_point end) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    pollfd wanted{fd, events, 0};
    const int ready = poll(&wanted, 1, static_cast<int>(std::clamp<int64_t>(left, 0, INT32_MAX)));
    if (ready > 0)
      return true;
    if (ready == 0 && left <= INT32_MAX)
      return false;
  }
}

file_descriptor connect_to(const std::string& host, uint16_t port, time_limit_point end) {
  const address_list addresses = resolve(host, port, 0);
  int problem = 0;
  int64_t left = 0;
  for (const addrinfo* a = addresses.get(); a; a = a->ai_next)
    ++left;
  for (const addrinfo* a = addresses.get(); a; a = a->ai_next, --left) {
    file_descriptor fd = open_socket(*a);
    const auto now = std::chrono::steady_clock::now();
    problem = fd.get() < 0 ? errno : finish_connect(fd.get(), *a, now + (end - now) / left); // one may be silent
    if (problem == 0)
      return fd;
  }
  fail(problem == ETIMEDOUT ? errc::timeout : errc::io,
       "{} cannot be reached: {}; check that the worker runs and that no firewall is between",
       endpoint_text(host, port), std::strerror(problem));
}

std::pair<file_descriptor, uint16_t> listen_at(const std::string& host, uint16_t port) {
  const address_list addresses = resolve(host, port, AI_PASSIVE);
  int problem = 0;
  for (const addrinfo* a = addresses.get(); a; a = a->ai_next) {
    file_descriptor fd = open_socket(*a);
    const int yes = 1;
    setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes); // a worker that starts again meets its old port
    if (bind(fd.get(), a->ai_addr, a->ai_addrlen) == 0 && ::listen(fd.get(), waiting_connections) == 0) {
      const uint16_t bound = port_of(fd.get());
      return {std::move(fd), bound};
    }
    problem = errno;
  }
  fail(errc::io, "cannot listen at {}: {}; choose another port, or an address of this machine",
       endpoint_text(host, port), std::strerror(problem));
}

file_descriptor accept_one(int listening) {
  file_descriptor fd(accept4(listening, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  const int yes = 1;
  if (fd.get() >= 0)
    setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  return fd;
}

std::string peer_address(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  char text[NI_MAXHOST] = {};
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (getpeername(fd, any, &size) != 0 || getnameinfo(any, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0)
    return {};
  return text;
}

bool is_loopback(const std::string& host) {
  const address_list addresses = resolve(host, 0, 0);
  for (const addrinfo* a = addresses.get(); a; a = a->ai_next) {
    if (a->ai_family == AF_INET) {
      if (ntohl(reinterpret_cast<const sockaddr_in*>(a->ai_addr)->sin_addr.s_addr) >> 24 != 127)
        return false;
    } else if (!IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(a->ai_addr)->sin6_addr)) {
      return false;
    }
  }
  return true;
}

} // namespace troupe::actors
