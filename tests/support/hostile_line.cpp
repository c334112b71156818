#include "support/hostile_line.hpp"

#include "base/error.hpp"

#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

namespace troupe::test {

using actors::progress;
using namespace std::chrono_literals;

namespace {

constexpr auto patience = 10s;

std::chrono::steady_clock::time_point in_a_while() {
  return std::chrono::steady_clock::now() + patience;
}

/// Waits for the event that an unfinished attempt needs; fails where the other side hangs.
void wait_until_ready(int fd, progress waits_for) {
  if (!actors::wait_for(fd, waits_for == progress::wants_output ? POLLOUT : POLLIN, in_a_while()))
    fail(errc::timeout, "the worker hangs");
}

} // namespace

actors::tls_context careless_context(const std::string& certificate, const std::string& key) {
  actors::tls_context context(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
  if (!certificate.empty() && (SSL_CTX_use_certificate_chain_file(context.get(), certificate.c_str()) != 1 ||
                               SSL_CTX_use_PrivateKey_file(context.get(), key.c_str(), SSL_FILETYPE_PEM) != 1))
    fail(errc::io, "cannot use the certificate '{}'", certificate);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  return context;
}

hostile_line::hostile_line(uint16_t port, const actors::tls_context& tls)
    : at_(actors::connect_to("127.0.0.1", port, in_a_while()), tls, false) {}

bool hostile_line::enter() {
  for (;;) {
    const progress came = at_.shake_hands();
    if (came == progress::done || came == progress::ended)
      return came == progress::done;
    wait_until_ready(fd(), came);
  }
}

bool hostile_line::say(std::span<const uint8_t> what) {
  while (!what.empty()) {
    size_t moved = 0;
    const progress came = at_.write(what.data(), what.size(), moved);
    if (came == progress::ended)
      return false;
    what = what.subspan(moved);
    if (moved == 0)
      wait_until_ready(fd(), came);
  }
  return true;
}

bool hostile_line::hear(bytes& to, std::chrono::milliseconds limit) {
  for (const auto end = std::chrono::steady_clock::now() + limit;;) {
    uint8_t part[16384];
    size_t moved = 0;
    const progress came = at_.read(part, sizeof part, moved);
    to.insert(to.end(), part, part + moved);
    if (came == progress::ended)
      return false;
    if (moved > 0 || !actors::wait_for(fd(), POLLIN, end))
      return true;
  }
}

bool hostile_line::await_end() {
  shutdown(fd(), SHUT_WR);
  bytes ignored;
  for (const auto end = in_a_while(); std::chrono::steady_clock::now() < end; ignored.clear())
    if (!hear(ignored, 100ms))
      return true;
  return false;
}

bytes client_hello(const actors::tls_context& tls) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) != 0)
    fail(errc::io, "no sockets: {}", std::strerror(errno));
  const actors::file_descriptor other(ends[1]);
  actors::channel caller(actors::file_descriptor(ends[0]), tls, false);
  caller.shake_hands();
  bytes said(16384);
  said.resize(static_cast<size_t>(std::max<ssize_t>(0, recv(other.get(), said.data(), said.size(), 0))));
  return said;
}

bytes random_bytes(size_t size, std::mt19937_64& random) {
  bytes made(size);
  for (uint8_t& b : made)
    b = static_cast<uint8_t>(random());
  return made;
}

bytes mutated(bytes from, std::mt19937_64& random) {
  constexpr std::array<uint32_t, 8> lengths{0, 1, 0x7f, 0xff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff};
  const auto any = [&](size_t below) { return below > 0 ? static_cast<size_t>(random() % below) : 0; };
  for (size_t changes = 1 + any(6); changes > 0 && !from.empty(); --changes) {
    const size_t at = any(from.size()), size = std::min(1 + any(64), from.size() - at);
    const auto begin = from.begin() + static_cast<ptrdiff_t>(at), end = begin + static_cast<ptrdiff_t>(size);
    switch (random() % 6) {
      case 0: from[at] = static_cast<uint8_t>(random()); break;
      case 1: from[at] ^= static_cast<uint8_t>(1U << random() % 8); break;
      case 2: from.erase(begin, end); break;
      case 3: {
        const bytes again(begin, end);
        const size_t to = any(from.size());
        from.insert(from.begin() + static_cast<ptrdiff_t>(to), again.begin(), again.end());
        break;
      }
      case 4: {
        const bytes made = random_bytes(size, random);
        std::copy(made.begin(), made.end(), begin);
        break;
      }
      default: {
        const uint32_t value = lengths[any(lengths.size())];
        std::memcpy(from.data() + at, &value, std::min(sizeof value, from.size() - at));
      }
    }
  }
  return from;
}

} // namespace troupe::test
