// GPU launches of comparisons, boolean operators, IsNaN, IsInf (shaders/predicate.comp) and Where (shaders/where.comp).
#include "launch/broadcast.hpp"
#include "launch/launch_rules.hpp"
#include "launch/parameters.hpp"

namespace troupe {
namespace {

/// A predicate of inputs that have one type; `flags` as the shader says.
launch_lists launch_predicate(const gpu_call& call, uint32_t predicate, uint32_t flags = 0) {
  const dtype type = call.inputs.at(0).type;
  const auto variant = arithmetic_variant(type, call.gpu);
  if (!variant || !call.gpu.int8)
    return {};
  return launch_broadcast(call, "predicate." + *variant, 2, {predicate, flags});
}

launch_lists equal_launches(const gpu_call& call) {
  return launch_predicate(call, shader::predicate_equal,
                          call.inputs.at(0).type == dtype::boolean ? shader::predicate_booleans : 0);
}

launch_lists is_inf_launches(const gpu_call& call) {
  const uint32_t positive = call.attrs.integer("detect_positive", 1) != 0 ? shader::predicate_positive : 0;
  const uint32_t negative = call.attrs.integer("detect_negative", 1) != 0 ? shader::predicate_negative : 0;
  return launch_predicate(call, shader::predicate_is_inf, positive | negative);
}

launch_lists where_launches(const gpu_call& call) {
  const auto variant = movement_variant(call.outputs.at(0).type, call.gpu);
  return variant && call.gpu.int8 ? launch_broadcast(call, "where." + *variant, 3, {}) : launch_lists{};
}

} // namespace

extern constinit const launch_rows logic_rules = {
    {"", "And", [](const gpu_call& c) { return launch_predicate(c, shader::predicate_both); }, 7},
    {"", "Equal", equal_launches, 7},
    {"", "Greater", [](const gpu_call& c) { return launch_predicate(c, shader::predicate_greater); }, 7},
    {"", "GreaterOrEqual", [](const gpu_call& c) { return launch_predicate(c, shader::predicate_greater_or_equal); }},
    {"", "IsInf", is_inf_launches},
    {"", "IsNaN", [](const gpu_call& c) { return launch_predicate(c, shader::predicate_is_nan); }},
    {"", "Less", [](const gpu_call& c) { return launch_predicate(c, shader::predicate_less); }, 7},
    {"", "LessOrEqual", [](const gpu_call& c) { return launch_predicate(c, shader::predicate_less_or_equal); }},
    {"", "Not", [](const gpu_call& c) { return launch_predicate(c, shader::predicate_negation); }},
    {"", "Or", [](const gpu_call& c) { return launch_predicate(c, shader::predicate_either); }, 7},
    {"", "Where", where_launches},
    {"", "Xor", [](const gpu_call& c) { return launch_predicate(c, shader::predicate_differ); }, 7},
};

} // namespace troupe
