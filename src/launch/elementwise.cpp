#include "launch/elementwise.hpp"

#include "launch/launches.hpp"
#include "ops/operand_walk.hpp"

#include <algorithm>

namespace troupe {
namespace {

constexpr size_t max_inputs = 8, max_single_inputs = 3, max_constants = 16, constant_base = 24, result_base = 8;
constexpr int64_t elementwise_group = 256;

uint32_t operand_byte(int32_t operand, size_t inputs) {
  if (operand < 0)
    return static_cast<uint32_t>(constant_base + static_cast<size_t>(-1 - operand));
  const auto at = static_cast<size_t>(operand);
  return static_cast<uint32_t>(at < inputs ? at : result_base + at - inputs);
}

/// Elements that each invocation computes, one behind the other: few groups where the device is full anyway, but the shortest
/// time from first to last where it is not.
uint32_t elements_each(int64_t count, const gpu_features& gpu) {
  const int64_t resident = int64_t{gpu.units} * 2048; // invocations that a device keeps in flight, about
  return count <= resident ? 1 : 4;
}

std::vector<uint32_t> specialise(const std::vector<gpu_elementwise_step>& steps, size_t inputs, uint32_t modes,
                                 uint32_t each) {
  std::vector<uint32_t> words{static_cast<uint32_t>(steps.size())};
  for (const gpu_elementwise_step& s : steps)
    words.push_back(s.code | operand_byte(s.a, inputs) << 8 | operand_byte(s.b, inputs) << 16 |
                    operand_byte(s.c, inputs) << 24);
  words.resize(1 + max_elementwise_steps);
  words.push_back(static_cast<uint32_t>(inputs));
  words.push_back(modes);
  words.push_back(each);
  return words;
}

std::vector<uint32_t> parameters(const operand_walk& walk, int64_t count, const std::vector<float>& constants) {
  std::vector<uint32_t> words{static_cast<uint32_t>(count), static_cast<uint32_t>(walk.dims.size()), 0, 0};
  const auto add = [&](const shape& numbers) {
    for (size_t axis = 0; axis < max_walk_rank; ++axis)
      words.push_back(axis < numbers.size() ? static_cast<uint32_t>(numbers[axis]) : 0);
  };
  add(walk.dims);
  for (size_t k = 0; k < max_inputs; ++k)
    add(k < walk.strides.size() ? walk.strides[k] : shape{});
  for (float c : constants)
    words.push_back(float_bits(c));
  return words;
}

/// Returns which of the shader's variants holds these steps.
const char* longest(const std::vector<gpu_elementwise_step>& steps) {
  if (steps.size() == 1)
    return steps[0].code >= static_cast<uint32_t>(gpu_step::sign) ? "_single" : "_1";
  return steps.size() <= 4 ? "_4" : "_16";
}

} // namespace

launch_lists launch_chain(const gpu_call& call, const std::vector<gpu_elementwise_step>& steps,
                          const std::vector<float>& constants) {
  const operand& out = call.outputs.at(0);
  const bool is_float = types::floats & set_of(out.type);
  const auto variant = is_float ? arithmetic_variant(out.type, call.gpu) : std::nullopt;
  std::vector<operand> operands;
  launch_builder b(call, "elementwise");
  std::vector<launch_binding> bindings;
  for (size_t i = 0; i < call.inputs.size(); ++i)
    if (call.has_input(i)) {
      operands.push_back(call.inputs[i]);
      bindings.push_back(b.in(i));
    }
  const size_t arity = steps.size() == 1 ? max_single_inputs : max_inputs;
  const bool same_types =
      std::all_of(operands.begin(), operands.end(), [&](const operand& o) { return o.type == out.type; });
  if (!variant || !same_types || operands.empty() || operands.size() > arity || constants.size() > max_constants ||
      steps.size() > max_elementwise_steps)
    return {};
  const operand_walk walk = walk_of(out, operands);
  if (walk.dims.size() > max_walk_rank)
    return {};
  uint32_t modes = 0;
  for (size_t i = 0; i < operands.size(); ++i)
    modes |= static_cast<uint32_t>(mode_of(walk, i)) << (2 * i);
  bindings.resize(arity, bindings[0]);
  bindings.push_back(b.out(0));
  const uint32_t each = elements_each(out.size(), call.gpu);
  launch& l = b.add("elementwise." + *variant + longest(steps),
                    flat_groups(out.size(), elementwise_group * each, call.gpu), std::move(bindings));
  l.constants = specialise(steps, operands.size(), modes, each);
  l.params = parameters(walk, out.size(), constants);
  auto list = b.finish();
  return list ? launch_lists{std::move(*list)} : launch_lists{};
}

launch_lists launch_with_constants(const gpu_call& call, uint32_t code, const std::vector<float>& constants) {
  return launch_chain(call, {{code, 0, -1, -2}}, constants);
}

launch_lists fused_elementwise_launches(const gpu_call& call) {
  const elementwise_program program = parse_elementwise(call.attrs, call.inputs.size());
  std::vector<gpu_elementwise_step> steps;
  for (const elementwise_step& s : program.steps)
    steps.push_back({static_cast<uint32_t>(s.code), s.a, s.b, s.c});
  return launch_chain(call, steps, program.constants);
}

} // namespace troupe
