// `troupe worker` as a process of its own, which tests kill, stop and start again.
#pragma once

#include <cstdint>
#include <string>
#include <sys/types.h>
#include <vector>

namespace troupe::test {

class worker_process {
public:
  /// Starts a worker at any free port of the loopback, or at this one, and waits until it listens.
  explicit worker_process(std::vector<std::string> options = {}, uint16_t port = 0);
  /// Kills it.
  ~worker_process();
  worker_process(const worker_process&) = delete;
  worker_process& operator=(const worker_process&) = delete;

  uint16_t port() const { return port_; }
  pid_t pid() const { return pid_; }
  bool is_alive() const { return pid_ > 0; }
  void kill_now();
  /// Stops it as a hung host would be; lets it go on.
  void hang();
  void go_on();
  /// Asks it to leave and returns its exit status.
  int terminate();

  /// Kilobytes in memory; open file descriptors.
  int64_t resident_kb() const;
  int descriptors() const;

private:
  pid_t pid_ = -1;
  int output_ = -1;
  uint16_t port_ = 0;
};

} // namespace troupe::test
