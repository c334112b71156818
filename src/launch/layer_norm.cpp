// GPU kernels of LayerNormalization and RMSNormalization: one launch that reads the operand once
// (shaders/layer_norm.comp).
#include "launch/launch_rules.hpp"
#include "launch/parameters.hpp"
#include "launch/row_team.hpp"
#include "ops/op.hpp"
#include "ops/operand_walk.hpp"

namespace troupe {
namespace {

/// Whether `vector` has the dims of the axes from `axis` on, perhaps after ones.
bool is_row(const operand& vector, const operand& x, size_t axis) {
  const std::span<const int64_t> row = std::span(x.dims).subspan(axis);
  if (vector.dims.size() < row.size() || vector.dims.size() > x.dims.size() || vector.size() != volume(row))
    return false;
  return std::equal(row.rbegin(), row.rend(), vector.dims.rbegin());
}

/// The statistics are float32, which is all that the kernel writes.
bool fits(const gpu_call& call) {
  for (size_t i = 1; i < call.inputs.size(); ++i)
    if (call.has_input(i) && call.inputs[i].type != call.inputs[0].type)
      return false;
  for (size_t o = 1; o < call.outputs.size(); ++o)
    if (call.has_output(o) && call.outputs[o].type != dtype::float32)
      return false;
  return true;
}

/// The parameters; `by_rows`: scale and bias are not walked.
std::optional<shader::layer_norm> parameters_of(const gpu_call& call, const row_extent& e, bool by_rows) {
  shader::layer_norm block{
      .rows = e.rows(), .size = e.size, .inner = e.inner, .epsilon = call.attrs.real("epsilon", 1e-5f)};
  if (by_rows)
    return block;
  const operand_walk walk =
      walk_of(call.outputs[0], std::vector{call.inputs[1], call.inputs[call.has_input(2) ? 2 : 1]});
  if (walk.dims.size() > max_walk_rank)
    return std::nullopt;
  block.rank = walk.dims.size();
  for (size_t i = 0; i < walk.dims.size(); ++i)
    block.axes[i] = {walk.dims[i], walk.strides[0][i], walk.strides[1][i]};
  return block;
}

launch_lists norm_launches(const gpu_call& call, bool centred) {
  const operand& x = call.inputs.at(0);
  const size_t axis = normalize_axis(call.attrs.integer("axis", -1), x.dims.size());
  const row_extent e{volume(std::span(x.dims).first(axis)), volume(std::span(x.dims).subspan(axis)), 1};
  const bool has_bias = call.has_input(2);
  const bool by_rows = is_row(call.inputs[1], x, axis) && (!has_bias || is_row(call.inputs[2], x, axis));
  const auto block = parameters_of(call, e, by_rows);
  if (!block || !fits(call))
    return {};
  launch_lists lists;
  for (const row_team& team : row_teams(e, e.width(), call.gpu)) {
    const auto shader = row_shader("layer_norm", x.type, team.plain, call.gpu);
    if (!shader)
      return {};
    launch_builder b(call, team.plain ? "layer_norm.plain" : "layer_norm");
    const auto statistics = [&](size_t o) { return b.out(call.has_output(o) ? o : 0); };
    launch& l = b.add(*shader, team.groups(e.rows(), call.gpu),
                      {b.in(0), b.out(0), b.in(1), b.in(has_bias ? 2 : 1), statistics(1), statistics(2)});
    l.constants = team.constants();
    for (bool flag : {centred, has_bias, by_rows, call.has_output(1), call.has_output(2)})
      l.constants.push_back(flag ? 1 : 0);
    l.params = words_of(*block);
    if (auto list = b.finish())
      lists.push_back(std::move(*list));
  }
  return lists;
}

} // namespace

extern constinit const launch_rows layer_norm_rules = {
    {"", "LayerNormalization", [](const gpu_call& c) { return norm_launches(c, true); }},
    {"", "RMSNormalization", [](const gpu_call& c) { return norm_launches(c, false); }},
};

} // namespace troupe
