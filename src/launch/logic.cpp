// GPU launches of comparisons, boolean operators, IsNaN, IsInf (shaders/predicate.comp) and Where (shaders/where.comp).
#include "launch/broadcast.hpp"
#include "launch/launches.hpp"
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

} // namespace

launch_lists equal_launches(const gpu_call& call) {
  return launch_predicate(call, shader::predicate_equal,
                          call.inputs.at(0).type == dtype::boolean ? shader::predicate_booleans : 0);
}

launch_lists greater_launches(const gpu_call& call) {
  return launch_predicate(call, shader::predicate_greater);
}

launch_lists greater_or_equal_launches(const gpu_call& call) {
  return launch_predicate(call, shader::predicate_greater_or_equal);
}

launch_lists less_launches(const gpu_call& call) {
  return launch_predicate(call, shader::predicate_less);
}

launch_lists less_or_equal_launches(const gpu_call& call) {
  return launch_predicate(call, shader::predicate_less_or_equal);
}

launch_lists and_launches(const gpu_call& call) {
  return launch_predicate(call, shader::predicate_both);
}

launch_lists or_launches(const gpu_call& call) {
  return launch_predicate(call, shader::predicate_either);
}

launch_lists xor_launches(const gpu_call& call) {
  return launch_predicate(call, shader::predicate_differ);
}

launch_lists not_launches(const gpu_call& call) {
  return launch_predicate(call, shader::predicate_negation);
}

launch_lists is_nan_launches(const gpu_call& call) {
  return launch_predicate(call, shader::predicate_is_nan);
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

} // namespace troupe
