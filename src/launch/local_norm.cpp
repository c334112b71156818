// GPU kernels of MeanVarianceNormalization and LpNormalization (shaders/local_norm.comp), and of LRN
// (shaders/lrn.comp).
#include "ops/onnx/local_norm.hpp"
#include "launch/launch_rules.hpp"
#include "launch/parameters.hpp"
#include "launch/row_walk.hpp"
#include "ops/op.hpp"

#include <algorithm>

namespace troupe {
namespace {

launch_lists norm_over(const gpu_call& call, const std::vector<bool>& axes, uint32_t kind) {
  const operand& x = call.inputs.at(0);
  const auto walk = walk_rows(x, axes);
  if (!walk)
    return {};
  launch_lists lists;
  for (const row_team& team : row_teams(walk->extent(), 1, call.gpu)) {
    const auto shader = row_shader("local_norm", x.type, team.plain, call.gpu);
    if (!shader)
      return {};
    launch_builder b(call, team.plain ? "local_norm.plain" : "local_norm");
    launch& l = b.add(*shader, team.groups(walk->results, call.gpu), {b.in(0), b.out(0)});
    l.constants = team.constants({kind});
    l.params = walk->parameters(1e-9f);
    if (auto list = b.finish())
      lists.push_back(std::move(*list));
  }
  return lists;
}

launch_lists mvn_launches(const gpu_call& call) {
  return norm_over(call, averaged_axes(call.attrs, call.inputs.at(0).dims.size()), shader::local_norm_variance);
}

launch_lists lp_norm_launches(const gpu_call& call) {
  const size_t rank = call.inputs.at(0).dims.size();
  std::vector<bool> axes(rank, false);
  axes[normalize_axis(call.attrs.integer("axis", -1), rank)] = true;
  return norm_over(call, axes,
                   call.attrs.integer("p", 2) == 2 ? shader::local_norm_squares : shader::local_norm_magnitudes);
}

launch_lists lrn_launches(const gpu_call& call) {
  const operand& x = call.inputs.at(0);
  const auto variant = float_variant(x.type, call.gpu);
  const int64_t size = call.attrs.integer("size");
  if (!variant || x.dims.size() < 2 || size < 1)
    return {};
  const int64_t channels = x.dims[1];
  launch_builder b(call, "lrn");
  launch& l = b.add("lrn." + *variant, flat_groups(x.size(), 256, call.gpu), {b.in(0), b.out(0)});
  l.params = words_of(shader::lrn{.count = x.size(),
                                  .channels = channels,
                                  .pixels = volume(std::span(x.dims).subspan(2)),
                                  .before = std::min(channels, (size - 1) / 2),
                                  .behind = std::min(channels, size / 2),
                                  .factor = call.attrs.real("alpha", 1e-4f) / static_cast<float>(size),
                                  .beta = call.attrs.real("beta", 0.75f),
                                  .bias = call.attrs.real("bias", 1.f)});
  return single_list(b);
}

} // namespace

extern constinit const launch_rows local_norm_rules = {
    {"", "LRN", lrn_launches},
    {"", "LpNormalization", lp_norm_launches},
    {"", "MeanVarianceNormalization", mvn_launches},
};

} // namespace troupe
