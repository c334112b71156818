// Samples of an engine and a session over time; what they say is src/monitoring's.
#include "monitoring/trends.hpp"

#include <chrono>
#include <deque>
#include <mutex>

namespace troupe {

struct monitor::state {
  state(const engine& e, session s, double window) : devices(e), model(std::move(s)), window_s(window) {}

  monitor_sample take() const {
    monitor_sample s{.at_s = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(),
                     .runs = model.stats().runs,
                     .queue = model.queue_stats()};
    const auto names = [&] {
      std::vector<std::string> all;
      for (device_summary& d : devices.devices())
        all.push_back(std::move(d.name));
      return all;
    };
    std::vector<std::string> before;
    std::vector<device_stats> counters;
    do { // again if a device came or left meanwhile: counters would be taken for another's
      before = names();
      counters = devices.stats();
    } while (before != names() || before.size() != counters.size());
    for (size_t d = 0; d < before.size(); ++d)
      s.devices.push_back({before[d], counters[d]});
    return s;
  }

  const engine& devices;
  const session model;
  const double window_s;
  mutable std::mutex mutex; // guards what follows
  std::deque<monitor_sample> samples;
};

monitor::monitor(const engine& devices, session model, const monitor_options& options)
    : state_(
          std::make_unique<state>(devices, std::move(model), std::chrono::duration<double>(options.window).count())) {
  if (options.window <= std::chrono::milliseconds(0))
    throw error(errc::invalid_argument, "the window of a monitor must be longer than nothing");
  sample();
}

monitor::~monitor() = default;
monitor::monitor(monitor&&) noexcept = default;
monitor& monitor::operator=(monitor&&) noexcept = default;

void monitor::sample() {
  const std::lock_guard lock(state_->mutex);
  auto& samples = state_->samples;
  monitor_sample now = state_->take();
  if (!samples.empty())
    monitoring::keep_silent(now, samples.back());
  samples.push_back(std::move(now));
  while (samples.size() > 2 && samples.front().at_s < samples.back().at_s - state_->window_s)
    samples.pop_front();
}

monitor_report monitor::report() const {
  const std::lock_guard lock(state_->mutex);
  return report_of(std::vector<monitor_sample>(state_->samples.begin(), state_->samples.end()));
}

} // namespace troupe
