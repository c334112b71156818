#include "launch/elementwise.hpp"

#include "launch/broadcast.hpp"
#include "launch/launch_rules.hpp"

#include <algorithm>

namespace troupe {
namespace {

constexpr size_t max_inputs = 8, max_single_inputs = 3, max_constants = 16, constant_base = 24, result_base = 8;

/// Functions that shaders/doubles.comp has. Qualified: those that <cmath> has too.
// clang-format off
constexpr auto double_codes = [] {
  using enum scalar_code;
  return std::to_array({add, subtract, multiply, divide, minimum, maximum, negate, scalar_code::abs, reciprocal,
                        scalar_code::sqrt, scalar_code::exp, scalar_code::log, scalar_code::floor, scalar_code::ceil,
                        relu, sigmoid, clip, leaky_relu, same, sign, scalar_code::round, thresholded_relu, softsign,
                        affine});
}();
// clang-format on

uint32_t operand_byte(int32_t operand, size_t inputs) {
  if (operand < 0)
    return static_cast<uint32_t>(constant_base + static_cast<size_t>(-1 - operand));
  const auto at = static_cast<size_t>(operand);
  return static_cast<uint32_t>(at < inputs ? at : result_base + at - inputs);
}

/// Returns the type of the shader's variant; nullopt unless all operands have one type that is among these.
std::optional<std::string> type_of(const gpu_call& call, dtype_set among) {
  const dtype type = call.outputs.at(0).type;
  const bool agree = std::ranges::all_of(call.inputs, [&](const operand& o) { return !o.present() || o.type == type; });
  return agree && (among & set_of(type)) ? arithmetic_variant(type, call.gpu) : std::nullopt;
}

} // namespace

uint32_t elements_each(int64_t count, const gpu_features& gpu) {
  const int64_t resident = int64_t{gpu.units} * 2048; // invocations that a device keeps in flight, about
  return count <= resident ? 1 : 4;
}

const char* chain_variant(const elementwise_program& program) {
  const auto& [steps, numbers] = program;
  if (numbers.size() > max_constants || steps.size() > max_elementwise_steps)
    return nullptr;
  const bool joins = std::ranges::all_of(steps, [](const elementwise_step& s) { return joins_chains(s.code); });
  if (steps.size() == 1)
    return joins ? "_1" : "_single";
  return !joins ? nullptr : steps.size() <= 4 ? "_4" : "_16";
}

size_t chain_operands(const elementwise_program& program) {
  return program.steps.size() == 1 ? max_single_inputs : max_inputs;
}

std::vector<uint32_t> chain_constants(const elementwise_program& program, size_t inputs, uint32_t each) {
  std::vector<uint32_t> words{each, static_cast<uint32_t>(inputs), static_cast<uint32_t>(program.steps.size())};
  for (const elementwise_step& s : program.steps)
    words.push_back(static_cast<uint32_t>(s.code) | operand_byte(s.a, inputs) << 8 | operand_byte(s.b, inputs) << 16 |
                    operand_byte(s.c, inputs) << 24);
  return words;
}

launch_lists launch_chain(const gpu_call& call, const elementwise_program& program) {
  const auto type = type_of(call, set_of(dtype::float32, dtype::float16));
  const char* variant = chain_variant(program);
  if (!type || !variant)
    return {};
  const uint32_t usual = elements_each(call.outputs[0].size(), call.gpu);
  launch_lists lists;
  for (const uint32_t each : {usual, usual == 1 ? 4u : 1u})
    if (each == usual || call.ways == way_range::every)
      add_lists(lists, launch_broadcast(call, "elementwise." + *type + variant, chain_operands(program),
                                        chain_constants(program, present_inputs(call), each), program.constants, each));
  return lists;
}

launch_lists launch_integers(const gpu_call& call, scalar_code code) {
  const auto type = type_of(call, types::integers);
  return type ? launch_broadcast(call, "integer." + *type, 3,
                                 {static_cast<uint32_t>(code), static_cast<uint32_t>(present_inputs(call))})
              : launch_lists{};
}

launch_lists launch_doubles(const gpu_call& call, scalar_code code, const std::vector<float>& numbers) {
  const auto type = type_of(call, set_of(dtype::float64));
  return type && std::ranges::find(double_codes, code) != double_codes.end()
             ? launch_broadcast(call, "doubles.f64", 3,
                                {static_cast<uint32_t>(code), static_cast<uint32_t>(present_inputs(call))}, numbers)
             : launch_lists{};
}

extern constinit const launch_rows elementwise_rules = {
    {"troupe", "Elementwise",
     [](const gpu_call& c) { return launch_chain(c, parse_elementwise(c.attrs, c.inputs.size())); }},
};

} // namespace troupe
