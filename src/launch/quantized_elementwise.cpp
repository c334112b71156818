// GPU launches of troupe.QuantizedElementwise (shaders/quantized_elementwise.comp).
#include "launch/broadcast.hpp"
#include "launch/elementwise.hpp"
#include "launch/launch_rules.hpp"
#include "launch/parameters.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// Returns the shader's number for an element type and whether it has a zero point; nullopt for other types.
std::optional<uint32_t> kind_of(dtype type, bool zero) {
  const uint32_t z = zero ? shader::chain_zero : 0;
  switch (type) {
    case dtype::float32: return shader::chain_float;
    case dtype::uint8: return shader::chain_uint8 | z;
    case dtype::int8: return shader::chain_int8 | z;
    default: return std::nullopt;
  }
}

bool is_single(const gpu_call& call, size_t i) {
  return !call.has_input(i) || call.inputs[i].size() == 1;
}

/// Whether an invocation can compute four neighbouring elements: every operand is a single element or in the output's
/// order.
bool comes_in_fours(const operand_walk& walk, int64_t count) {
  for (size_t k = 0; k < walk.strides.size(); ++k)
    if (mode_of(walk, k) == walk_mode::strided)
      return false;
  return count % 4 == 0;
}

launch_lists quantized_elementwise_launches(const gpu_call& call) {
  const auto count = static_cast<size_t>(call.attrs.integer("operands"));
  const elementwise_program program = parse_elementwise(call.attrs, count);
  const char* variant = chain_variant(program);
  const size_t slots = chain_operands(program), y_scale = 3 * count;
  if (!variant || count > slots || !call.gpu.int8)
    return {};
  launch_builder b(call, "quantized_elementwise");
  std::vector<launch_binding> bindings;
  std::vector<operand> operands;
  uint32_t kinds = 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t x = 3 * i, scale = x + 1, zero = x + 2;
    const auto kind = kind_of(call.inputs.at(x).type, call.has_input(zero));
    if (!kind || !is_single(call, scale) || !is_single(call, zero))
      return {};
    kinds |= *kind << (shader::chain_kind_bits * i);
    operands.push_back(call.inputs[x]);
    bindings.insert(bindings.end(),
                    {b.in(x), b.in(call.has_input(scale) ? scale : x), b.in(call.has_input(zero) ? zero : x)});
  }
  const auto result = kind_of(call.outputs.at(0).type, call.has_input(y_scale + 1));
  const operand_walk walk = walk_of(call.outputs[0], operands);
  if (!result || walk.dims.size() > max_walk_rank || !is_single(call, y_scale) || !is_single(call, y_scale + 1))
    return {};
  bindings.resize(3 * slots, bindings[0]);
  bindings.insert(bindings.end(), {b.in(call.has_input(y_scale) ? y_scale : 0),
                                   b.in(call.has_input(y_scale + 1) ? y_scale + 1 : 0), b.out(0)});
  const int64_t elements = call.outputs[0].size();
  const bool fours = comes_in_fours(walk, elements);
  const int64_t invocations = fours ? elements / 4 : elements;
  const uint32_t each = elements_each(invocations, call.gpu);
  launch& l = b.add(std::string("quantized_elementwise.f32") + variant, flat_groups(invocations, 256 * each, call.gpu),
                    std::move(bindings));
  l.constants = {walk_modes(walk)};
  std::vector<uint32_t> chain = chain_constants(program, count, each);
  chain.resize(3 + max_elementwise_steps);
  l.constants.insert(l.constants.end(), chain.begin(), chain.end());
  l.constants.insert(l.constants.end(), {kinds, *result, fours ? 1u : 0u});
  l.params = broadcast_parameters(walk, slots, elements, program.constants);
  return single_list(b);
}

} // namespace

extern constinit const launch_rows quantized_elementwise_rules = {
    {"troupe", "QuantizedElementwise", quantized_elementwise_launches},
};

} // namespace troupe
