#include "ops/onnx/elementwise.hpp"

#include "ops/operand.hpp"

namespace troupe {

op_cost cost_per_element(const call_shapes& call, double flops) {
  return {call.outputs.empty() ? 0 : flops * static_cast<double>(volume(call.outputs[0])), operand_bytes(call)};
}

void check_broadcast(std::span<const int64_t> dims, std::span<const int64_t> out) {
  bool fits = dims.size() <= out.size();
  for (size_t i = 0; fits && i < dims.size(); ++i)
    fits = dims[i] == 1 || dims[i] == out[out.size() - dims.size() + i];
  if (!fits)
    fail(errc::invalid_input, "shape {} cannot be broadcast to {}", to_string(dims), to_string(out));
}

} // namespace troupe
