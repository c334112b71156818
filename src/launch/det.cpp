// GPU launch of Det (shaders/det.comp): a group a matrix.
#include "launch/launch_rules.hpp"
#include "launch/parameters.hpp"

#include <algorithm>

namespace troupe {
namespace {

launch_lists det_launches(const gpu_call& call) {
  const operand &x = call.inputs.at(0), &y = call.outputs.at(0);
  const auto variant = arithmetic_variant(x.type, call.gpu);
  if ((variant != "f32" && variant != "f16" && variant != "f64") || !call.gpu.float64)
    return {};
  launch_builder b(call, "det");
  const launch_binding scratch = b.scratch(std::max<int64_t>(x.size(), 1) * 8);
  launch& l = b.add("det." + *variant, flat_groups(y.size(), 1, call.gpu), {b.in(0), b.out(0), written(scratch)});
  l.params = words_of(shader::det{.count = y.size(), .n = x.dims.back()});
  return single_list(b);
}

} // namespace

extern constinit const launch_rows det_rules = {
    {"", "Det", det_launches},
};

} // namespace troupe
