// `--monitor` and `--metrics`: what engine and session do, looked at while they work.
#pragma once

#include "cli/command.hpp"
#include "troupe/monitor.hpp"

#include <condition_variable>
#include <mutex>
#include <thread>

namespace troupe::cli {

struct monitor_arguments {
  bool report = false;
  std::filesystem::path metrics; // empty: none

  bool wanted() const { return report || !metrics.empty(); }
};

/// Adds `--monitor` and `--metrics`.
void add_monitor_options(CLI::App& command, monitor_arguments& args);

/// Samples engine and session four times a second, in a thread of its own, from `begin` to `end`, and writes the file
/// of metrics about once a second. Does nothing if nothing is wanted. Engine and arguments outlive it.
class watcher {
public:
  watcher(const engine& devices, session model, const monitor_arguments& args)
      : devices_(devices), model_(std::move(model)), args_(args) {}
  watcher(const watcher&) = delete;
  watcher& operator=(const watcher&) = delete;

  /// Starts; what was before no longer counts. Throws `errc::io` if the metrics cannot be written.
  void begin();

  /// Takes the last sample, writes the metrics and returns the report if `--monitor` asks for it. Throws as `begin`.
  std::optional<monitor_report> end();

private:
  void watch_until(const std::stop_token& end);
  void write_metrics() const;

  const engine& devices_;
  const session model_;
  const monitor_arguments& args_;
  std::optional<monitor> samples_;
  std::mutex lock_; // for `ended_`
  std::condition_variable_any ended_;
  std::jthread thread_;
};

} // namespace troupe::cli
