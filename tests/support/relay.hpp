// A TCP relay in user space between a session and a worker: delays, slows, stalls or cuts the bytes.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <list>
#include <mutex>
#include <netinet/in.h>
#include <string>
#include <thread>

namespace troupe::test {

/// Listens at any free port; each connection has two threads, one a direction.
class relay {
public:
  /// Passes connections at the address `at` on to a port of `to_address`; both are numbers.
  explicit relay(uint16_t to, const std::string& to_address = "127.0.0.1", const std::string& at = "127.0.0.1");
  ~relay();
  relay(const relay&) = delete;
  relay& operator=(const relay&) = delete;

  uint16_t port() const { return port_; }
  /// From now on: how long bytes take, and how many pass a second (0: no limit).
  void set_delay(std::chrono::microseconds delay) { delay_us_ = delay.count(); }
  void set_rate(int64_t bytes_per_second) { rate_ = bytes_per_second; }
  /// While on, no bytes pass, and neither side notices.
  void stall(bool on) { stalled_ = on; }
  /// Ends the connections that there are.
  void cut();
  int64_t passed() const { return passed_; }

private:
  struct connection {
    int near = -1, far = -1;
    std::atomic<bool> ended{false};
    std::thread there, back;
  };

  void accept_all();
  /// Closes connections that have ended.
  void forget_ended();
  void pass(connection& c, int from, int to);

  int listening_ = -1;
  uint16_t port_ = 0;
  const sockaddr_in to_;
  std::atomic<int64_t> delay_us_{0}, rate_{0}, passed_{0};
  std::atomic<bool> stalled_{false}, closing_{false};
  std::mutex mutex_;
  std::list<connection> connections_;
  std::thread accepting_;
};

} // namespace troupe::test
