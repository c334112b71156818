#include "episode.hpp"

#include "troupe/error.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace troupe::python {
namespace {

/// Returns the mean over devices of what all tasks take, divided by the number of devices.
double mean_share(const std::vector<double>& times, size_t devices) {
  double all = 0;
  for (size_t task = 0; task * devices < times.size(); ++task) {
    double sum = 0, finite = 0;
    for (size_t d = 0; d < devices; ++d)
      if (const double s = times[task * devices + d]; std::isfinite(s)) {
        sum += s;
        ++finite;
      }
    all += finite > 0 ? sum / finite : 0;
  }
  return times.empty() ? 1 : std::max(all / static_cast<double>(devices), 1e-12);
}

} // namespace

episode::episode(std::shared_ptr<question> asked, bool keep) : question_(std::move(asked)) {
  scale_ = mean_share(question_->times(), device_count());
  question_->order();
  const auto count = static_cast<uint32_t>(device_count());
  if (keep)
    for (size_t e = 0; e < question_->edges().size(); ++e)
      for (uint32_t from = 0; from < count; ++from)
        for (uint32_t to = 0; to < count; ++to)
          moves_.push_back(question_->move_seconds(e, from, to));
  restart();
}

void episode::restart() {
  at_ = 0;
  makespan_ = 0;
  devices_.assign(order().size(), -1);
  end_.assign(order().size(), 0);
  free_.assign(device_count(), 0);
  find_ready();
}

uint32_t episode::task() const {
  if (done())
    throw error(errc::invalid_argument, "all tasks are decided");
  return order()[at_];
}

bool episode::allowed(size_t device) const {
  return !done() && std::isfinite(seconds(device));
}

double episode::moved(size_t edge, uint32_t from, uint32_t to) const {
  const size_t count = device_count();
  return moves_.empty() ? question_->move_seconds(edge, from, to) : moves_[(edge * count + from) * count + to];
}

void episode::find_ready() {
  ready_.assign(device_count(), 0);
  if (done())
    return;
  const uint32_t task = order()[at_];
  const std::vector<size_t>& begin = question_->edges_begin();
  for (size_t e = begin[task]; e < begin[task + 1]; ++e) {
    const uint32_t source = question_->edges()[e].from;
    for (size_t d = 0; d < ready_.size(); ++d)
      ready_[d] = std::max(ready_[d],
                           end_[source] + moved(e, static_cast<uint32_t>(devices_[source]), static_cast<uint32_t>(d)));
  }
}

void episode::observe(std::span<float> seen) const {
  std::fill(seen.begin(), seen.end(), 0.0F);
  if (done())
    return;
  const double rank = question_->ranks()[order()[at_]];
  for (size_t d = 0; d < device_count(); ++d) {
    const double own = allowed(d) ? seconds(d) : 0, end = std::max(ready_[d], free_[d]) + own;
    size_t column = d * features;
    for (const double figure : {own, ready_[d], free_[d], end, rank})
      seen[column++] = static_cast<float>(figure / scale_);
    seen[column] = static_cast<float>(at_) / static_cast<float>(order().size());
  }
}

double episode::put(int64_t device) {
  if (device < 0 || static_cast<size_t>(device) >= device_count() || !allowed(static_cast<size_t>(device))) {
    std::string where;
    for (size_t d = 0; d < device_count(); ++d)
      if (allowed(d))
        where += (where.empty() ? "" : ", ") + std::to_string(d);
    throw error(errc::invalid_argument,
                "device " + std::to_string(device) + " for a task that may run on [" + where + "]");
  }
  const auto d = static_cast<size_t>(device);
  const double end = std::max(ready_[d], free_[d]) + seconds(d), before = makespan_;
  devices_[order()[at_]] = device;
  end_[order()[at_]] = free_[d] = end;
  ++at_;
  makespan_ = std::max(makespan_, end);
  find_ready();
  return makespan_ - before;
}

} // namespace troupe::python
