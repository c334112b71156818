// GPU kernels of BatchNormalization (elementwise, by given statistics), InstanceNormalization and GroupNormalization (one launch for
// each slice in one part, or two if slices are too few to fill the device), for plain and channels-last operands.
#include "launch/launches.hpp"
#include "launch/parameters.hpp"
#include "launch/row_team.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// Least elements of a part of a slice.
constexpr int64_t least_part = 4096;
constexpr int64_t most_slice_parts = 64;

bool lies_last(const operand& o) {
  return o.layout == layout::channels_last && !same_in_both_layouts(o.dims);
}

bool same_types(const gpu_call& call) {
  return std::all_of(call.inputs.begin(), call.inputs.end(),
                     [&](const operand& o) { return o.type == call.inputs[0].type; });
}

/// The slices of an operand, and how they are cut into parts.
struct slices {
  int64_t images, channels, groups, pixels, scales;
  bool last;
  uint32_t width;  // of a vector
  int64_t vectors; // of a slice
  int64_t per_part, parts;

  int64_t count() const { return images * groups; }
};

slices cut(const gpu_call& call, int64_t groups) {
  const operand& x = call.inputs[0];
  slices s{.images = x.dims[0], .channels = x.dims[1], .groups = groups, .scales = call.inputs[1].size()};
  s.last = lies_last(x);
  s.pixels = volume(std::span(x.dims).subspan(2));
  const int64_t in_group = s.channels / groups, size = in_group * s.pixels;
  s.width = (s.last ? in_group : size) % 4 == 0 ? 4 : 1;
  s.vectors = size / s.width;
  const int64_t wanted = s.count() >= call.gpu.units || s.count() == 0 ? 1 : 2 * call.gpu.units / s.count();
  s.parts = std::clamp<int64_t>(std::min(wanted, size / least_part), 1, most_slice_parts);
  s.per_part = std::max<int64_t>(1, (s.vectors + s.parts - 1) / s.parts);
  s.parts = std::max<int64_t>(1, (s.vectors + s.per_part - 1) / s.per_part);
  return s;
}

std::optional<launch_list> normalize(const gpu_call& call, const slices& s, const row_team& team) {
  const auto shader = row_shader("normalization", call.inputs[0].type, team.plain, call.gpu);
  if (!shader)
    return std::nullopt;
  launch_builder b(call, team.plain ? "normalization.plain" : "normalization");
  const int64_t rows = s.count() * s.parts;
  const launch_binding moments = s.parts > 1 ? b.scratch(rows * 8) : b.out(0);
  const auto add = [&](uint32_t phase, launch_binding x, launch_binding y, launch_binding statistics) {
    launch& l = b.add(*shader, team.groups(rows, call.gpu), {x, y, b.in(1), b.in(2), statistics});
    l.constants = team.constants();
    l.constants.insert(l.constants.end(), {phase, s.last ? 1u : 0u});
    l.params = words_of(
        shader::normalization{.rows = rows,
                              .parts = s.parts,
                              .vectors = s.vectors,
                              .per_part = s.per_part,
                              .channels = s.channels,
                              .groups = s.groups,
                              .pixels = s.pixels,
                              .channels_each = std::max<int64_t>(1, s.channels / std::max<int64_t>(1, s.scales)),
                              .epsilon = call.attrs.real("epsilon", 1e-5f)});
  };
  if (s.parts == 1) {
    add(shader::normalization_all, b.in(0), b.out(0), moments);
  } else {
    add(shader::normalization_moments, b.in(0), written(moments), written(moments));
    b.next_step();
    add(shader::normalization_result, b.in(0), b.out(0), moments);
  }
  return b.finish();
}

launch_lists slice_norm_launches(const gpu_call& call, int64_t groups) {
  const operand &x = call.inputs.at(0), &y = call.outputs.at(0);
  const int64_t scales = call.inputs.at(1).size();
  if (!same_types(call) || x.dims.size() < 2 || groups < 1 || x.dims[1] % groups != 0 || lies_last(x) != lies_last(y) ||
      scales < 1 || call.inputs.at(2).size() != scales || x.dims[1] % scales != 0)
    return {};
  const slices s = cut(call, groups);
  launch_lists lists;
  for (const row_team& team : row_teams({s.count() * s.parts, s.per_part * s.width, 1}, s.width, call.gpu))
    if (auto list = normalize(call, s, team))
      lists.push_back(std::move(*list));
  return lists;
}

} // namespace

launch_lists batch_norm_launches(const gpu_call& call) {
  const operand &x = call.inputs.at(0), &y = call.outputs.at(0);
  const auto variant = float_variant(x.type, call.gpu);
  if (!variant || !same_types(call) || x.dims.empty() || call.attrs.integer("training_mode", 0) != 0 ||
      lies_last(x) != lies_last(y))
    return {};
  for (size_t o = 1; o < call.outputs.size(); ++o)
    if (call.has_output(o))
      return {};
  // Old opsets have statistics of single features, which are in plain order.
  const bool spatial = call.attrs.integer("spatial", 1) != 0;
  if (!spatial && lies_last(x))
    return {};
  const int64_t statistics = call.inputs.at(3).size();
  const int64_t inner = x.dims.size() < 3 || lies_last(x) || !spatial ? 1 : volume(std::span(x.dims).subspan(2));
  launch_builder b(call, "batch_norm");
  launch& l = b.add("batch_norm." + *variant, flat_groups(x.size(), 1024, call.gpu),
                    {b.in(0), b.in(1), b.in(2), b.in(3), b.in(4), b.out(0)});
  l.params = words_of(shader::batch_norm{
      .count = x.size(), .channels = statistics, .inner = inner, .epsilon = call.attrs.real("epsilon", 1e-5f)});
  return single_list(b);
}

launch_lists instance_norm_launches(const gpu_call& call) {
  return slice_norm_launches(call, call.inputs.at(0).dims.at(1));
}

launch_lists group_norm_launches(const gpu_call& call) {
  return slice_norm_launches(call, call.attrs.integer("num_groups"));
}

} // namespace troupe
