#include "plan/predict.hpp"

#include "cost/cost_model.hpp"
#include "plan/gpu_support.hpp"

#include <algorithm>

namespace troupe {
namespace {

double work_seconds(const plan& p, std::span<const shape> dims, const chunk& c) {
  double sum = 0;
  for (node_id n : c.nodes)
    sum += predict_node(p, dims, n);
  return sum + c.barrier_count() * p.devices[c.device].profile.barrier_s;
}

double copy_seconds(const plan& p, std::span<const shape> dims, const chunk& c) {
  const device_profile& device = p.devices[c.device].profile;
  double sum = 0;
  for (value_id v : c.uploads)
    sum += link_seconds(value_bytes(p, dims, v), device.up);
  for (value_id v : c.downloads)
    sum += link_seconds(value_bytes(p, dims, v), device.down);
  return sum;
}

} // namespace

double value_bytes(const plan& p, std::span<const shape> dims, value_id v) {
  return byte_count(p.program->values[v].type, dims[v]);
}

double wave_seconds(const plan& p, std::span<const shape> dims, const chunk& c, uint32_t w) {
  double sum = 0;
  for (node_id n : c.wave(w))
    sum += predict_node(p, dims, n);
  return sum;
}

double predict_node(const plan& p, std::span<const shape> dims, node_id n) {
  const node& call = p.program->nodes[n];
  const auto dims_of = [&](value_id v) -> const shape& {
    const weight_ptr& constant = p.program->values[v].constant;
    return constant ? constant->dims : dims[v];
  };
  return node_seconds(*p.program, call, dims_of, p.devices[p.placement[n]].profile);
}

prediction predict(const plan& p, std::span<const shape> dims) {
  prediction result;
  result.chunks.resize(p.chunks.size());
  result.busy_s.assign(p.devices.size(), 0);
  std::vector<double> free_at(p.devices.size(), 0);
  uint32_t segment = 0;
  for (chunk_id id = 0; id < p.chunks.size(); ++id) { // a topological order, ascending on every device
    const chunk& c = p.chunks[id];
    if (c.segment != segment) {
      segment = c.segment;
      std::fill(free_at.begin(), free_at.end(), result.makespan_s);
    }
    chunk_prediction& t = result.chunks[id];
    t.begin_s = free_at[c.device];
    for (chunk_id before : c.predecessors)
      if (const device_index other = p.chunks[before].device; other != c.device)
        t.begin_s = std::max(t.begin_s, result.chunks[before].end_s + p.devices[other].profile.chunk_s);
    t.copy_s = copy_seconds(p, dims, c);
    const double busy = t.copy_s + work_seconds(p, dims, c);
    t.end_s = free_at[c.device] = t.begin_s + busy;
    result.busy_s[c.device] += busy;
    result.makespan_s = std::max(result.makespan_s, t.end_s + p.devices[c.device].profile.chunk_s);
  }
  return result;
}

std::vector<shape> expected_dims(const graph& program, const bindings& expected) {
  gpu_support support(program, expected);
  std::vector<shape> dims;
  dims.reserve(program.values.size());
  for (value_id v = 0; v < static_cast<value_id>(program.values.size()); ++v)
    dims.push_back(support.representative_dims(v));
  return dims;
}

} // namespace troupe
