// `troupe worker` as a separate process, which tests kill, stop and start again.
#pragma once

#include "support/host_network.hpp"

#include <condition_variable>
#include <mutex>
#include <string>
#include <sys/types.h>
#include <thread>
#include <vector>

namespace troupe::test {

class worker_process {
public:
  /// Starts a worker at any free port, or at this one, and waits until it listens: --insecure, unless `options` have
  /// --tls-cert. Its log is read, but all but the last MiB forgotten.
  explicit worker_process(std::vector<std::string> options = {}, uint16_t port = 0, const host_place& where = {});
  /// Kills it.
  ~worker_process();
  worker_process(const worker_process&) = delete;
  worker_process& operator=(const worker_process&) = delete;

  uint16_t port() const { return port_; }
  pid_t pid() const { return pid_; }
  bool is_alive() const { return pid_ > 0; }
  /// Whether it has ended by itself.
  bool has_ended();
  /// Its exit status or signal if it has ended by itself, and the unread part of its log, for a message.
  std::string last_words();
  void kill_now();
  /// Stops it as a hung host would be; lets it go on.
  void hang();
  void go_on();
  /// Asks it to leave.
  void ask_to_leave();
  /// Waits until it has ended; returns its exit status, -1 if a signal ended it.
  int await_end();
  /// Both.
  int terminate() {
    ask_to_leave();
    return await_end();
  }
  /// Returns the next line of its log, or the rest if it has ended.
  std::string next_line();

  /// Kilobytes in memory, now and at most; open file descriptors.
  int64_t resident_kb() const { return status_kb("VmRSS"); }
  int64_t peak_kb() const { return status_kb("VmHWM"); }
  int descriptors() const;

private:
  int64_t status_kb(const std::string& what) const;
  void read_log();

  pid_t pid_ = -1;
  int end_status_ = 0; // of waitpid, if it has ended by itself
  int output_ = -1;
  uint16_t port_ = 0;
  std::mutex mutex_;
  std::condition_variable logged_;
  std::string log_; // the unread part; guarded by mutex_, as the next
  bool log_is_over_ = false;
  std::thread log_reader_;
};

} // namespace troupe::test
