#include "support/relay.hpp"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdexcept>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

namespace troupe::test {
namespace {

sockaddr_in endpoint(const std::string& address, uint16_t port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  if (inet_pton(AF_INET, address.c_str(), &at.sin_addr) != 1)
    throw std::runtime_error(address + " is no address");
  return at;
}

void send_at_once(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

} // namespace

relay::relay(uint16_t to, const std::string& to_address, const std::string& at)
    : listening_(socket(AF_INET, SOCK_STREAM, 0)), to_(endpoint(to_address, to)) {
  sockaddr_in own = endpoint(at, 0);
  socklen_t size = sizeof own;
  if (bind(listening_, reinterpret_cast<sockaddr*>(&own), size) != 0 || listen(listening_, 16) != 0 ||
      getsockname(listening_, reinterpret_cast<sockaddr*>(&own), &size) != 0)
    throw std::runtime_error("the relay cannot listen");
  port_ = ntohs(own.sin_port);
  accepting_ = std::thread([this] { accept_all(); });
}

relay::~relay() {
  closing_ = true;
  accepting_.join();
  cut();
  forget_ended();
  close(listening_);
}

void relay::forget_ended() {
  const std::lock_guard lock(mutex_);
  std::erase_if(connections_, [](connection& c) {
    if (!c.ended)
      return false;
    c.there.join();
    c.back.join();
    close(c.near);
    close(c.far);
    return true;
  });
}

void relay::accept_all() {
  while (!closing_) {
    pollfd ready{listening_, POLLIN, 0};
    if (poll(&ready, 1, 20) <= 0)
      continue;
    const int near = accept(listening_, nullptr, nullptr);
    const int far = socket(AF_INET, SOCK_STREAM, 0);
    if (near < 0 || connect(far, reinterpret_cast<const sockaddr*>(&to_), sizeof to_) != 0) {
      close(near);
      close(far);
      continue;
    }
    send_at_once(near);
    send_at_once(far);
    forget_ended();
    const std::lock_guard lock(mutex_);
    connection& c = connections_.emplace_back();
    c.near = near;
    c.far = far;
    c.there = std::thread([this, &c] { pass(c, c.near, c.far); });
    c.back = std::thread([this, &c] { pass(c, c.far, c.near); });
  }
}

void relay::pass(connection& c, int from, int to) {
  std::vector<char> bytes(64 << 10);
  while (!c.ended && !closing_) {
    pollfd ready{from, POLLIN, 0};
    if (stalled_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      continue;
    }
    if (poll(&ready, 1, 20) <= 0)
      continue;
    const int64_t rate = rate_;
    const size_t most = rate > 0 ? std::max<size_t>(static_cast<size_t>(rate / 200), 1) : bytes.size();
    const ssize_t got = recv(from, bytes.data(), std::min(bytes.size(), most), 0);
    if (got <= 0)
      break;
    if (const int64_t delay = delay_us_; delay > 0)
      std::this_thread::sleep_for(std::chrono::microseconds(delay));
    if (rate > 0)
      std::this_thread::sleep_for(std::chrono::duration<double>(static_cast<double>(got) / static_cast<double>(rate)));
    for (ssize_t sent = 0; sent < got;) {
      const ssize_t n = send(to, bytes.data() + sent, static_cast<size_t>(got - sent), MSG_NOSIGNAL);
      if (n <= 0)
        break;
      sent += n;
    }
    passed_ += got;
  }
  c.ended = true;
  shutdown(c.near, SHUT_RDWR);
  shutdown(c.far, SHUT_RDWR);
}

void relay::cut() {
  const std::lock_guard lock(mutex_);
  for (connection& c : connections_) {
    c.ended = true;
    shutdown(c.near, SHUT_RDWR);
    shutdown(c.far, SHUT_RDWR);
  }
}

} // namespace troupe::test
