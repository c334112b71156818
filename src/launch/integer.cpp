#include "launch/integer.hpp"

#include "launch/broadcast.hpp"

#include <algorithm>

namespace troupe {

launch_lists launch_integers(const gpu_call& call, integer_code code) {
  const dtype type = call.outputs.at(0).type;
  const auto variant = types::integers & set_of(type) ? arithmetic_variant(type, call.gpu) : std::nullopt;
  const bool same_types = std::all_of(call.inputs.begin(), call.inputs.end(),
                                      [&](const operand& o) { return !o.present() || o.type == type; });
  if (!variant || !same_types)
    return {};
  return launch_broadcast(call, "integer." + *variant, 3,
                          {static_cast<uint32_t>(code), static_cast<uint32_t>(present_inputs(call))});
}

} // namespace troupe
