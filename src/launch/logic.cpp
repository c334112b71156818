// GPU launches of comparisons, boolean operators, IsNaN, IsInf (shaders/predicate.comp) and Where (shaders/where.comp).
#include "launch/broadcast.hpp"
#include "launch/launches.hpp"

namespace troupe {
namespace {

/// Predicates of shaders/predicate.comp.
enum class predicate_code : uint8_t {
  equal,
  greater,
  greater_or_equal,
  less,
  less_or_equal,
  both,
  either,
  differ,
  negation,
  is_nan,
  is_inf
};

/// A predicate of inputs that have one type; `flags` as the shader says.
launch_lists launch_predicate(const gpu_call& call, predicate_code code, uint32_t flags = 0) {
  const dtype type = call.inputs.at(0).type;
  const auto variant = arithmetic_variant(type, call.gpu);
  if (!variant || !call.gpu.int8)
    return {};
  return launch_broadcast(call, "predicate." + *variant, 2, {static_cast<uint32_t>(code), flags});
}

} // namespace

launch_lists equal_launches(const gpu_call& call) {
  return launch_predicate(call, predicate_code::equal, call.inputs.at(0).type == dtype::boolean ? 1 : 0);
}

launch_lists greater_launches(const gpu_call& call) {
  return launch_predicate(call, predicate_code::greater);
}

launch_lists greater_or_equal_launches(const gpu_call& call) {
  return launch_predicate(call, predicate_code::greater_or_equal);
}

launch_lists less_launches(const gpu_call& call) {
  return launch_predicate(call, predicate_code::less);
}

launch_lists less_or_equal_launches(const gpu_call& call) {
  return launch_predicate(call, predicate_code::less_or_equal);
}

launch_lists and_launches(const gpu_call& call) {
  return launch_predicate(call, predicate_code::both);
}

launch_lists or_launches(const gpu_call& call) {
  return launch_predicate(call, predicate_code::either);
}

launch_lists xor_launches(const gpu_call& call) {
  return launch_predicate(call, predicate_code::differ);
}

launch_lists not_launches(const gpu_call& call) {
  return launch_predicate(call, predicate_code::negation);
}

launch_lists is_nan_launches(const gpu_call& call) {
  return launch_predicate(call, predicate_code::is_nan);
}

launch_lists is_inf_launches(const gpu_call& call) {
  const uint32_t positive = call.attrs.integer("detect_positive", 1) != 0 ? 1 : 0;
  const uint32_t negative = call.attrs.integer("detect_negative", 1) != 0 ? 2 : 0;
  return launch_predicate(call, predicate_code::is_inf, positive | negative);
}

launch_lists where_launches(const gpu_call& call) {
  const auto variant = movement_variant(call.outputs.at(0).type, call.gpu);
  return variant && call.gpu.int8 ? launch_broadcast(call, "where." + *variant, 3, {}) : launch_lists{};
}

} // namespace troupe
