// GPU launch rule of Pad.
#include "launch/launch_rules.hpp"
#include "launch/movement.hpp"
#include "launch/parameters.hpp"
#include "ops/onnx/padding.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace troupe {
namespace {

static_assert(shader::is(pad_mode::constant, shader::pad_constant) && shader::is(pad_mode::edge, shader::pad_edge) &&
              shader::is(pad_mode::reflect, shader::pad_reflect) && shader::is(pad_mode::wrap, shader::pad_wrap));

/// An axis as shaders/pad.comp walks it.
struct pad_axis {
  int64_t out, before, in, step;
};

/// Innermost first; axes that are not padded become one with the next inner axis if that is whole too.
std::vector<pad_axis> axes_of(const shape& in, const shape& out, const padding& p) {
  std::vector<pad_axis> axes;
  int64_t step = 1;
  bool is_inner_whole = false;
  for (size_t i = in.size(); i-- > 0;) {
    const bool whole = p.before[i] == 0 && p.in[i] == in[i] && in[i] == out[i];
    if (whole && is_inner_whole) {
      axes.back().out *= out[i];
      axes.back().in *= in[i];
    } else {
      axes.push_back({out[i], p.before[i], p.in[i], step});
    }
    is_inner_whole = whole;
    step *= in[i];
  }
  return axes;
}

bool is_in_range(const pad_axis& a) {
  constexpr int64_t limit = int64_t{1} << 29; // the shader counts in signed words and doubles them
  return a.out < limit && a.in < limit && a.before < limit && a.before > -limit;
}

launch_lists pad_launches(const gpu_call& call) {
  const operand &in = call.inputs[0], &out = call.outputs[0];
  dry_call dry(call);
  const padding p = padding_of(dry.context());
  const std::vector<pad_axis> axes = axes_of(in.dims, out.dims, p);
  const auto variant = movement_variant(in.type, call.gpu);
  const bool given = call.has_input(2);
  if (!variant || axes.size() > max_copy_axes || !std::all_of(axes.begin(), axes.end(), is_in_range))
    return {};
  if (given && (call.inputs[2].type != in.type || call.inputs[2].size() != 1))
    return {};
  const bool is_empty = std::ranges::any_of(p.in, [](int64_t d) { return d <= 0; });
  if (p.mode != pad_mode::constant && is_empty && out.size() > 0)
    fail(errc::invalid_input, "Pad cannot repeat elements of an empty dim");
  launch_builder b(call, "pad");
  launch& l =
      b.add("pad." + *variant, flat_groups(out.size(), 256, call.gpu), {b.in(0), b.in(given ? 2 : 0), b.out(0)});
  uint32_t fill[2] = {};
  if (!given) {
    const tensor value = pad_fill(dry.context());
    std::memcpy(fill, value.data(), static_cast<size_t>(value.bytes()));
  }
  shader::pad block{
      .count = out.size(),
      .rank = axes.size(),
      .mode = static_cast<uint32_t>(p.mode),
      .fill_given = given,
      .fill_low = fill[0],
      .fill_high = fill[1],
      .base = std::inner_product(p.skipped.begin(), p.skipped.end(), strides_of(in.dims).begin(), int64_t{0})};
  for (size_t i = 0; i < axes.size(); ++i)
    block.axes[i] = {axes[i].out, axes[i].before, axes[i].in, axes[i].step};
  l.params = words_of(block);
  return single_list(b);
}

} // namespace

extern constinit const launch_rows pad_rules = {
    {"", "Pad", pad_launches},
};

} // namespace troupe
