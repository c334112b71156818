#include "cli/monitoring.hpp"

#include "base/user_files.hpp"

namespace troupe::cli {

namespace {

constexpr auto sample_interval = std::chrono::milliseconds(250);
constexpr int samples_a_file = 4; // of metrics

} // namespace

void add_monitor_options(CLI::App& command, monitor_arguments& args) {
  command.option_defaults()->group("Output");
  command.add_flag("--monitor", args.report,
                   "Say at the end what devices, pools and queue did, how that went over time, and what slows it down");
  command
      .add_option("--metrics", args.metrics,
                  "Write counters to a file about once a second, as Prometheus reads them (node_exporter's textfile "
                  "collector)")
      ->type_name("FILE");
}

void watcher::begin() {
  if (!args_.wanted())
    return;
  thread_ = {}; // asks the one before to stop, and waits for it
  samples_.emplace(devices_, model_);
  write_metrics();
  thread_ = std::jthread([this](const std::stop_token& end) { watch_until(end); });
}

std::optional<monitor_report> watcher::end() {
  if (!samples_)
    return std::nullopt;
  thread_ = {};
  samples_->sample();
  write_metrics();
  return args_.report ? std::optional(samples_->report()) : std::nullopt;
}

void watcher::watch_until(const std::stop_token& end) {
  std::unique_lock lock(lock_);
  for (int n = 1; !ended_.wait_for(lock, end, sample_interval, [] { return false; }) && !end.stop_requested(); ++n)
    try {
      samples_->sample();
      if (n % samples_a_file == 0)
        write_metrics();
    } catch (const std::exception&) {
      // A file that cannot be written for a while hurts no run; if it cannot at the end, `end` says so.
    }
}

void watcher::write_metrics() const {
  if (args_.metrics.empty())
    return;
  const std::string text = to_prometheus(samples_->report());
  if (!replace_file(args_.metrics, std::as_bytes(std::span(text))))
    fail(errc::io, "the metrics cannot be written to '{}'", args_.metrics.string());
}

} // namespace troupe::cli
