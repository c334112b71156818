#include "ops/onnx/elementwise.hpp"

namespace troupe {

op_cost cost_per_element(const call_shapes& call, double flops) {
  op_cost cost;
  for (size_t i = 0; i < call.inputs.size(); ++i)
    if (call.input_types[i] != dtype::undefined)
      cost.bytes += static_cast<double>(bytes_of(call.input_types[i], volume(call.inputs[i])));
  for (size_t i = 0; i < call.outputs.size(); ++i)
    if (call.output_types[i] != dtype::undefined)
      cost.bytes += static_cast<double>(bytes_of(call.output_types[i], volume(call.outputs[i])));
  if (!call.outputs.empty())
    cost.flops = flops * static_cast<double>(volume(call.outputs[0]));
  return cost;
}

void check_broadcast(std::span<const int64_t> dims, std::span<const int64_t> out) {
  bool fits = dims.size() <= out.size();
  for (size_t i = 0; fits && i < dims.size(); ++i)
    fits = dims[i] == 1 || dims[i] == out[out.size() - dims.size() + i];
  if (!fits)
    fail(errc::invalid_input, "shape {} cannot be broadcast to {}", to_string(dims), to_string(out));
}

} // namespace troupe
