#include "plan/estimate/predict.hpp"

#include "base/error.hpp"
#include "cost/cost_model.hpp"
#include "graph/bodies.hpp"
#include "ops/evaluate.hpp"
#include "ops/onnx/control.hpp"
#include "plan/estimate/gpu_support.hpp"
#include "plan/estimate/lanes.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace troupe {
namespace {

/// From the signal of a peer's work to the work that waits for it, on an H200.
constexpr double peer_wait_s = 9e-6;

/// The lanes of a device, and when its newest chunks of the segment ended theirs; the newest first.
struct device_lanes {
  lane_clock host, net_in, in, out, net_out;
  processor_clock work;
  std::array<double, 2> works{};
  std::array<double, 3> outs{};

  explicit device_lanes(double start = 0) : host{start}, net_in{start}, in{start}, out{start}, net_out{start} {
    work.free_s = start;
  }
};

class player {
public:
  player(std::span<const chunk_cost> chunks, std::span<const device_info> devices)
      : chunks_(chunks), devices_(devices), processor_(first_of_processors(devices)),
        next_is_free_(next_is_free(chunks, devices.size())), lanes_(devices.size()) {
    result_.chunks.resize(chunks.size());
    result_.busy_s.assign(devices.size(), 0);
  }

  prediction run() {
    uint32_t segment = 0;
    for (chunk_id id = 0; id < chunks_.size(); ++id) {
      if (chunks_[id].segment != segment) {
        segment = chunks_[id].segment;
        // A segment is bound, and its chunks are sent, when all of the one before has ended.
        lanes_.assign(devices_.size(), device_lanes(result_.makespan_s));
      }
      play(id);
    }
    return std::move(result_);
  }

private:
  /// Returns when what a chunk awaits from other devices is there.
  double ready(const chunk_cost& c) const {
    double at = 0;
    for (chunk_id before : c.predecessors)
      if (const device_index other = chunks_[before].device; other != c.device)
        at = std::max(at, result_.chunks[before].end_s + (are_peers(devices_[other], devices_[c.device])
                                                              ? peer_wait_s
                                                              : devices_[other].profile.chunk_s));
    return at;
  }

  void play(chunk_id id) {
    const chunk_cost& c = chunks_[id];
    const device_info& device = devices_[c.device];
    device_lanes& l = lanes_[processor_[c.device]];
    const bool in_beside = device.copies_beside_work && l.work.last && c.in_bytes >= copies_beside_bytes;
    const bool out_beside = device.copies_beside_work && next_is_free_[id] && c.out_bytes >= copies_beside_bytes;
    device_lanes& own = lanes_[c.device]; // each device has a thread and a way over the network of its own
    double start = own.host.take(ready(c), c.host_s);
    if (c.net_in_s > 0)
      start = own.net_in.take(start, c.net_in_s);
    double begin = std::max({start, l.work.free_s, l.outs[1]});
    if (in_beside) {
      // `find_lifetimes` keeps memory for this: uploads of a chunk may come while the chunk before works, so after the
      // work of the one before that, and after the downloads of the one before both.
      begin = std::max({start, l.in.free_s, l.works[1], l.outs[2]});
      start = l.in.take(begin, c.in_s);
    }
    start = std::max({start, l.work.free_s, l.outs[1]}) + l.work.submit(c.device, device, c.work_s, start);
    if (!in_beside)
      start = l.in.take(start, c.in_s);
    l.work.free_s = start + c.work_s;
    // Both directions of the link are used by one copy at a time.
    const double end = l.out.take(l.work.free_s, c.out_s);
    if (!out_beside)
      l.work.free_s = end;
    l.works = {l.work.free_s, l.works[0]};
    l.outs = {end, l.outs[0], l.outs[1]};
    double there = end;
    if (c.net_out_s > 0)
      there = own.net_out.take(end, c.net_out_s);
    result_.chunks[id] = {begin, there, c.net_in_s + c.in_s + c.out_s + c.net_out_s};
    result_.busy_s[c.device] += c.in_s + c.work_s + c.out_s;
    result_.makespan_s = std::max(result_.makespan_s, there + device.profile.chunk_s);
  }

  std::span<const chunk_cost> chunks_;
  std::span<const device_info> devices_;
  const std::vector<size_t> processor_;  // by device: the first that shares its processor, and has the lanes
  const std::vector<bool> next_is_free_; // by chunk
  std::vector<device_lanes> lanes_;
  prediction result_;
};

/// Returns the count that a Loop is given; nullopt if it depends on data or on dims that are not among the expected
/// ones.
std::optional<int64_t> given_trips(const plan& p, value_id count) {
  const value& v = p.program->values[count];
  if (v.constant && volume(v.constant->dims) == 1)
    return to_int64(materialise(*v.constant).view()).front();
  if (!v.known || v.known->size() != 1)
    return std::nullopt;
  try {
    return v.known->front().evaluate(p.options.expected);
  } catch (const error&) {
    return std::nullopt;
  }
}

/// Returns how often a Loop or a Scan is expected to run its body.
double trips(const plan& p, std::span<const shape> dims, const node& call, control_kind kind) {
  /// What exporters write for "until the condition fails" is larger.
  constexpr int64_t most = std::numeric_limits<int32_t>::max() - 1;
  std::optional<int64_t> count;
  if (kind == control_kind::loop && call.inputs[0] != no_value)
    count = given_trips(p, call.inputs[0]);
  if (kind == control_kind::scan) // along its first axis, unless attributes say otherwise
    if (const shape& scanned = dims[call.inputs[call.formal_inputs() - 1]]; !scanned.empty())
      count = scanned[0];
  return static_cast<double>(count && *count <= most ? std::max<int64_t>(*count, 0) : representative_dim);
}

/// Returns the seconds of a control-flow node: of the longer branch, or of all iterations.
double control_seconds(const plan& p, std::span<const shape> dims, node_id n) {
  double longest = 0;
  const node& call = p.program->nodes[n];
  const control_kind kind = control_kind_of(call);
  for (const planned_body& body : p.bodies)
    if (body.node == n) {
      const plan& b = *body.compiled;
      const double once = predict(b, expected_dims(*b.program, b.options.expected)).makespan_s;
      longest = std::max(longest, kind == control_kind::branch ? once : once * trips(p, dims, call, kind));
    }
  return longest;
}

} // namespace

double value_bytes(const plan& p, std::span<const shape> dims, value_id v) {
  return byte_count(p.program->values[v].type, dims[v]);
}

double predict_node(const plan& p, std::span<const shape> dims, node_id n) {
  if (has_body(p.program->nodes[n]))
    return control_seconds(p, dims, n);
  if (launches_nothing(p, p.program->nodes[n]))
    return 0;
  return predict_node(p, dims, n, p.devices[p.placement[n]].profile);
}

double predict_node(const plan& p, std::span<const shape> dims, node_id n, const device_profile& on) {
  const auto dims_of = [&](value_id v) -> const shape& {
    const weight_ptr& constant = p.program->values[v].constant;
    return constant ? constant->dims : dims[v];
  };
  return node_seconds(*p.program, p.program->nodes[n], dims_of, on);
}

std::vector<bool> values_wanted_here(const plan& p) {
  std::vector<bool> wanted(p.program->values.size(), false);
  for (value_id v : p.program->outputs)
    wanted[v] = true;
  for (const transfer& t : p.transfers)
    if (t.to && !is_remote(p.devices[p.chunks[*t.to].device]))
      wanted[t.value] = true;
  return wanted;
}

void add_upload(chunk_cost& cost, const plan& p, std::span<const shape> dims, value_id v) {
  const device_info& device = p.devices[cost.device];
  const node_id maker = p.producer[v];
  const double bytes = value_bytes(p, dims, v);
  if (bytes == 0)
    return;
  cost.in_bytes += bytes;
  cost.in_s += link_seconds(bytes, device.profile.up);
  if (is_remote(device))
    cost.net_in_s += network_seconds(bytes, maker < 0 ? nullptr : &p.devices[p.placement[maker]], &device);
  if (maker < 0 && !is_remote(device)) // over the network they come to memory that the device reads
    cost.host_s += bytes / device.profile.input_bytes_per_s;
}

void add_download(chunk_cost& cost, const plan& p, std::span<const shape> dims, value_id v, bool comes_here) {
  const device_info& device = p.devices[cost.device];
  const double bytes = value_bytes(p, dims, v);
  if (bytes == 0)
    return;
  cost.out_bytes += bytes;
  cost.out_s += link_seconds(bytes, device.profile.down);
  if (comes_here)
    cost.net_out_s += network_seconds(bytes, &device, nullptr);
}

std::vector<chunk_cost> chunk_costs(const plan& p, std::span<const shape> dims) {
  const std::vector<bool> wanted_here = values_wanted_here(p);
  std::vector<chunk_cost> costs;
  costs.reserve(p.chunks.size());
  for (const chunk& c : p.chunks) {
    const device_profile& device = p.devices[c.device].profile;
    chunk_cost& cost = costs.emplace_back(chunk_cost{.device = c.device, .segment = c.segment});
    cost.predecessors = c.predecessors;
    for (node_id n : c.nodes)
      cost.work_s += predict_node(p, dims, n);
    cost.work_s += c.barrier_count() * device.barrier_s;
    for (value_id v : c.downloads)
      add_download(cost, p, dims, v, wanted_here[v]);
  }
  for (const transfer& t : p.transfers)
    if (t.to)
      add_upload(costs[*t.to], p, dims, t.value);
  return costs;
}

std::vector<bool> next_is_free(std::span<const chunk_cost> chunks, size_t devices) {
  std::vector<bool> is_free(chunks.size(), false), awaited(chunks.size(), false);
  for (const chunk_cost& c : chunks)
    for (chunk_id before : c.predecessors)
      if (chunks[before].device != c.device)
        awaited[before] = true;
  std::vector<const chunk_cost*> next(devices, nullptr);
  for (auto id = static_cast<chunk_id>(chunks.size()); id-- > 0;) {
    const chunk_cost& c = chunks[id];
    const chunk_cost* behind = std::exchange(next[c.device], &c);
    is_free[id] = behind && behind->segment == c.segment &&
                  (!awaited[id] || behind->predecessors.empty() || behind->predecessors.back() <= id);
  }
  return is_free;
}

prediction play(std::span<const chunk_cost> chunks, std::span<const device_info> devices) {
  return player(chunks, devices).run();
}

prediction predict(const plan& p, std::span<const shape> dims) {
  return play(chunk_costs(p, dims), p.devices);
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
