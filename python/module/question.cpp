#include "question.hpp"

#include "troupe/error.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>

namespace troupe::python {
namespace {

/// Whether a task reads an input for the first time.
bool is_first(const uint32_t* inputs, uint64_t input, uint64_t begin) {
  return std::find(inputs + begin, inputs + input, inputs[input]) == inputs + input;
}

} // namespace

question::question(const policy_problem* asked)
    : asked_(asked), tasks_(asked->task_count), devices_(asked->device_count) {}

const policy_problem& question::asked() const {
  if (!asked_)
    throw error(errc::invalid_argument, "a problem can be asked while its policy is called, not later");
  return *asked_;
}

const std::vector<double>& question::times() {
  if (times_.size() != tasks_ * devices_) {
    const policy_problem& p = asked();
    times_.reserve(tasks_ * devices_);
    for (uint32_t n = 0; n < p.task_count; ++n)
      for (uint32_t d = 0; d < p.device_count; ++d)
        times_.push_back(p.allowed(p.context, n, d) ? p.seconds(p.context, n, d)
                                                    : std::numeric_limits<double>::infinity());
  }
  return times_;
}

const std::vector<edge>& question::edges() {
  if (edges_begin_.empty()) {
    const policy_problem& p = asked();
    edges_begin_.push_back(0);
    for (uint32_t n = 0; n < p.task_count; ++n) {
      for (uint64_t i = p.input_begin[n]; i < p.input_begin[n + 1]; ++i)
        if (const uint32_t v = p.inputs[i]; p.producer[v] != policy_none && is_first(p.inputs, i, p.input_begin[n]))
          edges_.push_back({p.producer[v], n, v});
      edges_begin_.push_back(edges_.size());
    }
  }
  return edges_;
}

double question::move_seconds(size_t e, uint32_t from, uint32_t to) {
  const policy_problem& p = asked();
  if (e >= edges().size() || from >= p.device_count || to >= p.device_count)
    throw error(errc::invalid_argument, "there is no edge " + std::to_string(e) + ", or no such device");
  return from == to ? 0 : p.devices[from].handover_s + p.move_seconds(p.context, edges_[e].value, from, to);
}

const std::vector<double>& question::ranks() {
  if (ranks_.size() == tasks_)
    return ranks_;
  const std::vector<double>& all = times();
  ranks_.assign(tasks_, 0);
  for (size_t n = tasks_, e = edges().size(); n-- > 0;) {
    double sum = 0, finite = 0;
    for (size_t d = 0; d < devices_; ++d)
      if (const double s = all[n * devices_ + d]; s < std::numeric_limits<double>::infinity()) {
        sum += s;
        ++finite;
      }
    ranks_[n] += finite > 0 ? sum / finite : 0;
    for (; e > 0 && edges_[e - 1].to == n; --e) {
      double& before = ranks_[edges_[e - 1].from];
      before = std::max(before, ranks_[n] + asked().move_weight * mean_move_seconds(e - 1));
    }
  }
  return ranks_;
}

const std::vector<uint32_t>& question::order() {
  if (order_.size() != tasks_) {
    order_.resize(ranks().size());
    std::iota(order_.begin(), order_.end(), 0U);
    std::stable_sort(order_.begin(), order_.end(), [&](uint32_t a, uint32_t b) { return ranks_[a] > ranks_[b]; });
  }
  return order_;
}

double question::makespan(std::span<const uint32_t> placed) {
  const std::vector<double>& all = times();
  std::vector<double> free(devices_, 0), end(tasks_, 0);
  for (const uint32_t n : order()) {
    const uint32_t d = placed[n];
    double begin = free[d];
    for (size_t e = edges_begin_[n]; e < edges_begin_[n + 1]; ++e) {
      const uint32_t from = edges_[e].from;
      begin = std::max(begin, end[from] + move_seconds(e, placed[from], d));
    }
    free[d] = end[n] = begin + all[n * devices_ + d];
  }
  return *std::max_element(free.begin(), free.end());
}

} // namespace troupe::python
