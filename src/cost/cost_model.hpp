// Predicted times: pure functions of work and profiles.
#pragma once

#include "cost/device_profile.hpp"
#include "cost/node_times.hpp"
#include "ops/op.hpp"

namespace troupe {

/// What a node has to do.
struct node_work {
  double flops = 0;
  double bytes = 0; // read and written
  arithmetic kind = arithmetic::float32;
  bool launches = true; // false: a view, for which no device has to work
  /// What measured times are looked up by; null: the roofline decides.
  std::shared_ptr<const node_identity> identity;
};

/// Returns the types and shapes of a node's operands; `dims_of` gives a value's dims.
template <class DimsOf>
call_shapes shapes_of(const graph& program, const node& n, DimsOf&& dims_of) {
  call_shapes call;
  const auto add = [&](const std::vector<value_id>& ids, std::vector<dtype>& types, std::vector<shape>& dims) {
    for (value_id v : ids) {
      types.push_back(v == no_value ? dtype::undefined : program.values[v].type);
      dims.push_back(v == no_value ? shape{} : dims_of(v));
    }
  };
  add(n.inputs, call.input_types, call.inputs);
  add(n.outputs, call.output_types, call.outputs);
  return call;
}

/// Returns the bytes of a value of these dims, as a number that cannot overflow; a string counts as its object.
double byte_count(dtype type, std::span<const int64_t> dims);

/// Returns the work of a call. An operator without a cost function reads and writes each operand once and computes
/// nothing.
node_work work_of(const node& n, const call_shapes& call);

/// Returns the seconds that a node with this work takes, barriers aside: as measured on the device, else as its
/// operator was, else by the roofline.
double seconds(const node_work& work, const device_profile& device);

/// Returns the seconds that node `n` of `program` takes, as above; `dims_of` gives a value's dims.
template <class DimsOf>
double node_seconds(const graph& program, const node& n, DimsOf&& dims_of, const device_profile& device) {
  const call_shapes call = shapes_of(program, n, dims_of);
  node_work work = work_of(n, call);
  if (device.measured && work.launches)
    work.identity = std::make_shared<const node_identity>(identity_of(program, n, call));
  return seconds(work, device);
}

/// Returns the seconds that `bytes` bytes take over a link; none if nothing is copied.
double link_seconds(double bytes, const link_speed& link);

} // namespace troupe
