#include "run/speed_watch.hpp"

#include "base/quantile.hpp"

#include <algorithm>

namespace troupe {
namespace {

constexpr double window_s = 0.25;
constexpr size_t window_runs = 3;
constexpr size_t windows_that_count = 3;    // in a row, until a pace counts as changed
constexpr size_t trial_windows = 3;         // … until a plan is judged, the first aside: it moves weights
constexpr double change_that_counts = 1.25; // noise of a fifth is less
constexpr double gain_that_counts = 1.1;    // of what is predicted
constexpr double gain_that_is_kept = 1.05;  // of what is measured
constexpr double horizon_s = 60;            // in which a plan has to gain more than moving its weights takes
constexpr std::chrono::seconds a_minute{60}, longest_rest = 16 * a_minute;

/// Adds the newest, and drops the oldest if there are more than count.
template <class Value>
void push_last(std::vector<Value>& values, Value newest) {
  values.push_back(std::move(newest));
  if (values.size() > windows_that_count)
    values.erase(values.begin());
}

bool differ(double a, double b) {
  return a > b * change_that_counts || b > a * change_that_counts;
}

} // namespace

void speed_watch::count(size_t runs, run_time now) {
  if (runs_ > 0) {
    const double passed = std::chrono::duration<double>(now - counted_).count();
    open_.busy_s += passed;
    open_.in_flight_s += passed * static_cast<double>(runs_);
  }
  runs_ = runs;
  counted_ = now;
}

speed_watch::advice speed_watch::ended(const ended_run& run, run_time now) {
  count(runs_, now);
  window_.busy_s += open_.busy_s;
  window_.in_flight_s += open_.in_flight_s;
  open_ = {};
  for (const device_time& t : run.devices)
    if (t.stated_s > 0 && t.measured_s > 0)
      devices_[t.device].samples.push_back(t.measured_s / t.stated_s);
  window_.stated_s += run.stated_s;
  ++window_.runs;
  if (window_.busy_s < window_s || window_.runs < window_runs)
    return advice::go_on;
  close_window(now);
  return trial_ ? judge(now) : look(now);
}

void speed_watch::skip(run_time now) {
  count(runs_, now);
  open_ = {};
}

void speed_watch::close_window(run_time now) {
  push_last(windows_, std::exchange(window_, {}));
  for (auto& [index, d] : devices_) {
    if (d.samples.empty())
      continue;
    push_last(d.windows, median(std::exchange(d.samples, {})));
    d.last = median(d.windows);
    d.measured = now;
    if (d.windows.size() == windows_that_count)
      d.best = d.best > 0 ? std::min(d.best, d.last) : d.last;
  }
}

speed_watch::advice speed_watch::look(run_time now) {
  const auto changed = [&](const auto& each) { return has_changed(each.second, now); };
  if (!asked_.empty() || now < quiet_until_ || windows_.size() < windows_that_count ||
      std::ranges::none_of(devices_, changed))
    return advice::go_on;
  for (const auto& [index, d] : devices_)
    asked_[index] = believed(d, now);
  return advice::plan;
}

bool speed_watch::has_changed(const device_pace& d, run_time now) const {
  if (d.windows.empty()) // the plan does not use it
    return d.last > 0 && differ(believed(d, now), d.planned);
  const auto is_slower = [&](double pace) { return pace > d.planned * change_that_counts; };
  const auto is_faster = [&](double pace) { return pace * change_that_counts < d.planned; };
  return d.windows.size() == windows_that_count &&
         (std::ranges::all_of(d.windows, is_slower) || std::ranges::all_of(d.windows, is_faster));
}

double speed_watch::believed(const device_pace& d, run_time now) const {
  return d.windows.empty() && d.best > 0 && now - d.measured > a_minute ? d.best : d.last;
}

std::vector<double> speed_watch::paces(size_t devices, run_time now) const {
  double usual = 0; // of devices at their best
  for (const auto& [index, d] : devices_)
    usual = std::max(usual, d.best);
  std::vector<double> all(devices, usual > 0 ? usual : 1);
  for (const auto& [index, d] : devices_)
    if (d.last > 0 && index < devices)
      all[index] = believed(d, now);
  return all;
}

double speed_watch::in_flight() const {
  std::vector<double> each;
  for (const window& w : windows_)
    each.push_back(w.in_flight_s / w.busy_s);
  return each.empty() ? 1 : std::max(1.0, median(each));
}

double speed_watch::seconds() const {
  std::vector<double> each;
  for (const window& w : windows_)
    each.push_back(w.busy_s / w.stated_s);
  return median(each);
}

bool speed_watch::take(const candidate& made, run_time now) {
  if (made.used == made.other || made.used_s < gain_that_counts * made.other_s ||
      made.move_s > (1 - made.other_s / made.used_s) * horizon_s) {
    refuse(false);
    return false;
  }
  if (const auto at = taken_lately(made.other, now)) {
    refuse(true);
    quiet_until_ = *at + a_minute;
    return false;
  }
  trial_ = trial{.before = made.used, .least_s = seconds() * made.used_stated_s / made.other_stated_s, .unused = {}};
  for (const auto& [index, d] : devices_)
    if (d.windows.empty())
      trial_->unused.emplace(index, d.planned);
  taken_.push_back({made.other, now});
  refuse(false);
  begin_windows();
  return true;
}

void speed_watch::refuse(bool later) {
  for (const auto& [index, pace] : std::exchange(asked_, {}))
    if (!later)
      devices_[index].planned = pace;
}

speed_watch::advice speed_watch::judge(run_time now) {
  if (++trial_->windows == 1)
    windows_.clear();
  if (trial_->windows <= trial_windows)
    return advice::go_on;
  if (seconds() * gain_that_is_kept <= trial_->least_s) {
    trial_.reset();
    rest_ = a_minute;
    return advice::go_on;
  }
  if (taken_lately(trial_->before, now))
    return advice::go_on; // until the minute is over
  taken_.push_back({trial_->before, now});
  quiet_until_ = now + rest_;
  rest_ = std::min<std::chrono::seconds>(2 * rest_, longest_rest);
  for (const auto& [index, pace] : trial_->unused) // as little is known of them as before
    devices_[index].planned = pace;
  trial_.reset();
  begin_windows();
  return advice::take_back;
}

std::optional<run_time> speed_watch::taken_lately(const hash128& plan, run_time now) {
  std::erase_if(taken_, [&](const taken_plan& t) { return now - t.at >= a_minute; });
  const auto found = std::ranges::find(taken_, plan, &taken_plan::plan);
  return found == taken_.end() ? std::nullopt : std::optional(found->at);
}

void speed_watch::begin_windows() {
  window_ = open_ = {};
  windows_.clear();
  for (auto& [index, d] : devices_) {
    d.samples.clear();
    d.windows.clear();
  }
}

} // namespace troupe
