#include "measure/measure_nodes.hpp"

#include "base/quantile.hpp"
#include "cost/cost_model.hpp"
#include "plan/estimate/predict.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// Barriers cost less than their calibrated time if work hides them: nodes have at least this part of a busy device's
/// time.
constexpr double least_share = 0.1;

/// What one device did in all traced runs.
class device_record {
public:
  explicit device_record(std::string_view device) : device_(device) {}

  void add(const traced_run& run, std::span<const shape> dims) {
    nodes_s_ = moves_s_ = 0;
    if (run.trace.source)
      add(run.trace, dims);
    copies_s_.push_back(std::min(moves_s_, std::max(run.busy_s - nodes_s_, 0.0)));
  }

  measured_nodes times(double run_count, double busy_s) const {
    const double scale = scale_to(run_count, busy_s);
    measured_nodes result;
    std::unordered_map<hash128, std::pair<double, double>> nodes; // seconds and calls
    std::map<decltype(rows_time().place()), rows_time> rows;
    for (const auto& [which, samples] : samples_) {
      const auto& [p, n] = which;
      const auto [identity, roofline_s] = describe(*p, n);
      const double count = static_cast<double>(samples.size()) / run_count, each = median(samples) * scale;
      auto& [sum_s, calls] = nodes[identity.key];
      if (calls == 0)
        result.nodes.emplace_back(identity.key, 0);
      sum_s += count * each;
      calls += count;
      operator_times& sums = result.operators[identity.op];
      sums.measured_s += count * each;
      sums.roofline_s += count * std::max(roofline_s, least_roofline_s);
      const rows_time which_rows{identity.family, identity.rows};
      rows_time& at = rows.try_emplace(which_rows.place(), which_rows).first->second;
      at.roofline_s = std::max(roofline_s, least_roofline_s);
      if (each > 0)
        at.spread = std::max(at.spread, (quantile(samples, 0.9) - quantile(samples, 0.1)) * scale / 2 / each);
      at.seconds = nodes[identity.key].first / nodes[identity.key].second; // of equal calls: their mean so far
    }
    for (const auto& [which, at] : rows)
      result.rows.push_back(at);
    for (auto& [key, seconds] : result.nodes)
      seconds = nodes[key].first / nodes[key].second;
    std::erase_if(result.operators, [](const auto& entry) { return !is_sane_ratio(entry.second); });
    return result;
  }

private:
  using node_in_plan = std::pair<const plan*, node_id>;

  void add(const run_trace& run, std::span<const shape> dims) {
    const plan& p = *run.source;
    for (const chunk_trace& c : run.chunks)
      if (p.devices[p.chunks[c.chunk].device].name == device_)
        add(p, c);
    dims_.try_emplace(&p, dims.begin(), dims.end());
    for (const run_trace& body : run.bodies)
      if (body.source)
        add(body, dims_of_body(*body.source));
  }

  void add(const plan& p, const chunk_trace& c) {
    const chunk& planned = p.chunks[c.chunk];
    barriers_s_ += planned.barrier_count() * p.devices[planned.device].profile.barrier_s;
    for (const device_timing& t : c.timings) {
      const double s = t.seconds();
      if (t.kind == device_timing::work::node && !launches_nothing(p, p.program->nodes[t.id]))
        samples_[{&p, t.id}].push_back(s);
      if (t.kind == device_timing::work::node)
        nodes_s_ += s;
      else
        moves_s_ += s;
    }
  }

  std::span<const shape> dims_of_body(const plan& body) {
    const auto [known, is_new] = dims_.try_emplace(&body);
    if (is_new)
      known->second = expected_dims(*body.program, body.options.expected);
    return known->second;
  }

  double scale_to(double run_count, double busy_s) const {
    double traced_s = 0;
    for (const auto& [which, samples] : samples_)
      traced_s += median(samples) * static_cast<double>(samples.size()) / run_count;
    const double work_s = busy_s - median(copies_s_) - barriers_s_ / run_count;
    return traced_s > 0 ? std::max(work_s, least_share * busy_s) / traced_s : 1;
  }

  /// Returns a node's identity and its time by the roofline.
  std::pair<node_identity, double> describe(const plan& p, node_id n) const {
    const node& call = p.program->nodes[n];
    const std::vector<shape>& dims = dims_.at(&p);
    const auto dims_of = [&](value_id v) -> const shape& {
      const weight_ptr& constant = p.program->values[v].constant;
      return constant ? constant->dims : dims[v];
    };
    const call_shapes shapes = shapes_of(*p.program, call, dims_of);
    return {identity_of(*p.program, call, shapes),
            seconds(work_of(call, shapes), p.devices[p.placement[n]].profile)}; // without an identity: the roofline
  }

  const std::string_view device_;
  std::map<node_in_plan, std::vector<double>> samples_; // seconds, over all runs
  std::unordered_map<const plan*, std::vector<shape>> dims_;
  double barriers_s_ = 0;            // over all runs
  double nodes_s_ = 0, moves_s_ = 0; // of the run that is added
  /// By run: copies that the device was busy with. Those that went beside its work, or before it, leave no gap in its
  /// time.
  std::vector<double> copies_s_;
};

} // namespace

measured_nodes measure_nodes(const model_runs& runs, std::string_view device) {
  device_record record(device);
  for (const traced_run& run : runs.traced)
    record.add(run, runs.dims);
  return record.times(static_cast<double>(runs.traced.size()), runs.busy_s);
}

std::vector<shape> dims_of_runs(const bound_plan& bound, const bindings& expected) {
  return bound.source->segment_count == 1 ? bound.dims : expected_dims(*bound.source->program, expected);
}

double busy_seconds(const run_stats& run, std::string_view device) {
  const auto found =
      std::find_if(run.busy_ms.begin(), run.busy_ms.end(), [&](const auto& b) { return b.first == device; });
  return found == run.busy_ms.end() ? 0 : found->second * 1e-3;
}

double node_seconds(const run_trace& run) {
  double seconds = 0;
  for (const chunk_trace& c : run.chunks)
    for (const device_timing& t : c.timings)
      if (t.kind == device_timing::work::node)
        seconds += t.seconds();
  return seconds;
}

std::vector<device_info> different_devices(const std::vector<device_info>& devices) {
  std::vector<device_info> found;
  for (const device_info& d : devices) {
    const bool known = std::any_of(found.begin(), found.end(), [&](const auto& f) { return key_of(f) == key_of(d); });
    if (known || d.fallback || d.kind == device_kind::null || is_remote(d))
      continue;
    found.push_back(d);
    found.back().name = d.name.substr(0, d.name.find('#')); // "cpu#1" is another instance of "cpu"
  }
  return found;
}

} // namespace troupe
