#include "monitoring/traced_work.hpp"

#include "graph/bodies.hpp"
#include "plan/estimate/gpu_support.hpp"
#include "plan/estimate/predict.hpp"

#include <algorithm>
#include <numeric>

namespace troupe::monitoring {

traced_work::traced_work(const run_trace& trace, std::span<const shape> dims)
    : trace_(trace), plan_(*trace.source), run_(replay_of(trace)),
      total_s_(static_cast<double>(trace.end_ns - trace.begin_ns) * 1e-9), dims_(dims.begin(), dims.end()),
      processor_(first_of_processors(plan_.devices)), work_s_(plan_.devices.size(), 0),
      busy_s_(plan_.devices.size(), 0) {
  if (dims_.empty())
    dims_ = expected_dims(*plan_.program, plan_.options.expected);
  for (const replayed_chunk& c : run_.chunks) {
    work_s_[lead_of(c.device)] += c.work_s;
    busy_s_[lead_of(c.device)] += c.busy_s();
  }
  for (device_index d = 0; d < plan_.devices.size(); ++d)
    if (work_s_[d] > 0 && is_real(d))
      used_.push_back(d);
}

double traced_work::any_busy_s() const {
  std::vector<std::pair<double, double>> spans;
  for (const replayed_chunk& c : run_.chunks)
    if (is_real(c.device))
      spans.emplace_back(c.begin_s, c.begin_s + c.busy_s());
  std::sort(spans.begin(), spans.end());
  double busy = 0, until = 0;
  for (const auto& [begin, end] : spans) {
    busy += std::max(end - std::max(begin, until), 0.0);
    until = std::max(until, end);
  }
  return busy;
}

double traced_work::predicted_s(node_id n, device_index d) const {
  return has_body(plan_.program->nodes[n]) ? 0 : predict_node(plan_, dims_, n, plan_.devices[d].profile);
}

double traced_work::predicted_s(device_index d) const {
  double sum = 0;
  for (node_id n = 0; n < static_cast<node_id>(plan_.program->nodes.size()); ++n)
    sum += predicted_s(n, d);
  return sum;
}

double traced_work::ratio(chunk_id c, device_index to) const {
  double here = 0, there = 0;
  for (node_id n : plan_.chunks[c].nodes) {
    here += predicted_s(n, plan_.chunks[c].device);
    there += predicted_s(n, to);
  }
  return here > 0 ? there / here : 1;
}

bool traced_work::can_run(device_index d, std::span<const node_id> nodes) const {
  const device_info& device = plan_.devices[d];
  const double weights = std::accumulate(plan_.weight_bytes.begin(), plan_.weight_bytes.end(), 0.0);
  if (weights > static_cast<double>(device.memory_bytes))
    return false;
  if (!device.gpu)
    return true;
  gpu_support support(*plan_.program, plan_.options.expected);
  return std::all_of(nodes.begin(), nodes.end(),
                     [&](node_id n) { return support.obstacle(n, *device.gpu) == gpu_obstacle::none; });
}

double traced_work::gain_on(device_index to, const std::function<bool(const replayed_chunk&)>& which) const {
  const bool copies = !plan_.devices[to].host_memory || is_remote(plan_.devices[to]);
  const auto stays = [&](const replayed_chunk& c) { return !is_real(c.device) || (c.device != to && !which(c)); };
  const auto meets_others = [&](chunk_id id) {
    const auto other = [&](chunk_id o) { return stays(run_.chunks[o]); };
    const chunk& c = plan_.chunks[id];
    return std::any_of(c.predecessors.begin(), c.predecessors.end(), other) ||
           std::any_of(c.dependents.begin(), c.dependents.end(), other);
  };
  return gain(makespan_if(run_, [&](chunk_id id, replayed_chunk& c) {
    if (stays(c))
      return;
    if (which(c) && c.device != to) {
      c.work_s *= ratio(id, to);
      c.device = to;
      if (!copies)
        c.input_s = c.output_s = 0;
    }
    if (meets_others(id))
      return;
    c.move_s = 0;
    const chunk& planned = plan_.chunks[id];
    if (!planned.predecessors.empty())
      c.lead_s = std::min(c.lead_s, 0.0);
    if (!planned.dependents.empty())
      c.answer_s = 0;
  }));
}

std::optional<std::pair<device_index, double>> traced_work::best_single() const {
  std::vector<node_id> nodes;
  for (const chunk& c : plan_.chunks)
    if (is_real(c.device))
      nodes.insert(nodes.end(), c.nodes.begin(), c.nodes.end());
  std::optional<std::pair<device_index, double>> best;
  for (device_index d : used_) {
    if (!can_run(d, nodes))
      continue;
    const double saved = gain_on(d, [](const replayed_chunk&) { return true; });
    if (!best || saved > best->second)
      best.emplace(d, saved);
  }
  return best;
}

} // namespace troupe::monitoring
