#include "cost/cost_model.hpp"

#include <algorithm>

namespace troupe {
namespace {

double bytes_of_all(const std::vector<dtype>& types, const std::vector<shape>& dims) {
  double sum = 0;
  for (size_t i = 0; i < types.size(); ++i)
    if (types[i] != dtype::undefined)
      sum += byte_count(types[i], dims[i]);
  return sum;
}

/// How a call computes: by its first data operand.
arithmetic kind_of(const call_shapes& call) {
  for (const auto* types : {&call.input_types, &call.output_types})
    for (dtype type : *types)
      if (type != dtype::undefined)
        return arithmetic_of(type);
  return arithmetic::other;
}

} // namespace

double byte_count(dtype type, std::span<const int64_t> dims) {
  double bytes = holds_objects(type) ? static_cast<double>(bytes_of(type, 1)) : bits_of(type) / 8.0;
  for (int64_t d : dims)
    bytes *= static_cast<double>(d);
  return bytes;
}

node_work work_of(const node& n, const call_shapes& call) {
  node_work work{.kind = kind_of(call)};
  if (n.def && n.def->alias == aliasing::view) {
    work.launches = false;
    return work;
  }
  if (n.def && n.def->cost) {
    const op_cost cost = n.def->cost(n.attrs, call);
    work.flops = cost.flops;
    work.bytes = cost.bytes;
  }
  if (work.bytes <= 0)
    work.bytes = bytes_of_all(call.input_types, call.inputs) + bytes_of_all(call.output_types, call.outputs);
  return work;
}

double seconds(const node_work& work, const device_profile& device) {
  if (!work.launches)
    return 0;
  const double arithmetic_s = work.flops / device.flops_per_s[static_cast<size_t>(work.kind)];
  const double roofline_s = device.launch_s + std::max(arithmetic_s, work.bytes / device.memory_bytes_per_s);
  return device.measured && work.identity ? device.measured->seconds(*work.identity, roofline_s) : roofline_s;
}

double link_seconds(double bytes, const link_speed& link) {
  return link.latency_s + bytes / link.bytes_per_s;
}

} // namespace troupe
