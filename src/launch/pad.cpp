// GPU launch rule of Pad.
#include "launch/launch_rules.hpp"
#include "launch/movement.hpp"
#include "launch/parameters.hpp"
#include "ops/onnx/padding.hpp"

#include <algorithm>
#include <cstring>

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
  for (size_t i = in.size(); i-- > 0;) {
    const bool whole = p.before[i] == 0 && in[i] == out[i];
    const bool joins = whole && !axes.empty() && axes.back().before == 0 && axes.back().in == axes.back().out;
    if (joins) {
      axes.back().out *= out[i];
      axes.back().in *= in[i];
    } else {
      axes.push_back({out[i], p.before[i], in[i], step});
    }
    step *= in[i];
  }
  return axes;
}

/// Leaves what cropping leaves of an axis, since `wrap` repeats that; returns the elements in front of it.
int64_t crop(pad_axis& a) {
  const int64_t first = std::max<int64_t>(0, -a.before), last = std::max<int64_t>(0, a.in + a.before - a.out);
  a.in -= first + last;
  a.before += first;
  return first * a.step;
}

bool is_in_range(const pad_axis& a) {
  constexpr int64_t limit = int64_t{1} << 29; // the shader counts in signed words and doubles them
  return a.out < limit && a.in < limit && a.before < limit && a.before > -limit;
}

launch_lists pad_launches(const gpu_call& call) {
  const operand &in = call.inputs[0], &out = call.outputs[0];
  dry_call dry(call);
  const padding p = padding_of(dry.context());
  std::vector<pad_axis> axes = axes_of(in.dims, out.dims, p);
  int64_t base = 0;
  if (p.mode == pad_mode::wrap)
    for (pad_axis& a : axes)
      base += crop(a);
  const auto variant = movement_variant(in.type, call.gpu);
  const bool given = call.has_input(2);
  if (!variant || axes.size() > max_copy_axes || !std::all_of(axes.begin(), axes.end(), is_in_range))
    return {};
  if (given && (call.inputs[2].type != in.type || call.inputs[2].size() != 1))
    return {};
  const bool is_empty = in.size() == 0 || std::ranges::any_of(axes, [](const pad_axis& a) { return a.in <= 0; });
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
  shader::pad block{.count = out.size(),
                    .rank = axes.size(),
                    .mode = static_cast<uint32_t>(p.mode),
                    .fill_given = given,
                    .fill_low = fill[0],
                    .fill_high = fill[1],
                    .base = base};
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
