// Resize and Upsample: an invocation an output element, or four (shaders/resize.comp). Axes that stay are merged; up to
// four merged axes. Antialiasing, exclude_outside and regions of interest take a launch an axis (resample.hpp). Not on
// GPUs: interpolated integers, and the nearest elements of a region.
#include "ops/onnx/resize.hpp"
#include "launch/launch_rules.hpp"
#include "launch/movement.hpp"
#include "launch/parameters.hpp"
#include "launch/resample.hpp"

#include <algorithm>
#include <cmath>

namespace troupe {
namespace {

constexpr uint32_t resize_group = 128;
constexpr size_t max_axes = 4;

/// One merged axis as the shader wants it.
struct gpu_axis {
  int64_t in = 1, out = 1;
  uint32_t taps = 1;
  int64_t up = 1, shift = 0, down = 1; // of one tap: ⌊(o · up + shift) / down⌋, clamped
  double slope = 1, offset = 0;        // of more

  bool stays() const { return taps == 1 && in == out && up == 1 && shift == 0 && down == 1; }
};

/// Returns the shift for which the formula gives `indices`; nullopt if there is none.
std::optional<int64_t> fit_shift(const std::vector<int64_t>& indices, int64_t in, int64_t up, int64_t down) {
  constexpr int64_t limit = int64_t{1} << 30;
  const auto count = static_cast<int64_t>(indices.size());
  if (up < 1 || down < 1 || count > limit / up || in > limit / down)
    return std::nullopt;
  int64_t least = -limit, most = limit;
  for (int64_t o = 0; o < count; ++o) {
    const int64_t index = indices[static_cast<size_t>(o)];
    if (index > 0)
      least = std::max(least, index * down - o * up);
    if (index < in - 1)
      most = std::min(most, (index + 1) * down - 1 - o * up);
  }
  if (least > most)
    return std::nullopt;
  return least == -limit ? most : most == limit ? least : least + (most - least) / 2;
}

/// Slopes to try: the ratio of the sizes, or of the sizes less one, then the slope itself in binary fractions.
bool fit_nearest(const std::vector<int64_t>& indices, int64_t in, int64_t out, double slope, gpu_axis& fitted) {
  std::vector<std::pair<int64_t, int64_t>> slopes{{2 * in, 2 * out}, {2 * (in - 1), 2 * (out - 1)}};
  for (int bits = 4; bits <= 20; bits += 4)
    slopes.emplace_back(std::llround(std::min(slope, 1e6) * std::ldexp(1.0, bits)), int64_t{1} << bits);
  for (const auto& [up, down] : slopes)
    if (const auto shift = fit_shift(indices, in, up, down)) {
      fitted.up = up;
      fitted.shift = *shift;
      fitted.down = down;
      return true;
    }
  return false;
}

/// Returns an axis as the shader wants it; nullopt if it cannot be put so.
std::optional<gpu_axis> gpu_axis_of(const resample_options& options, const resample_axis& axis) {
  const resample_taps taps = taps_of(options, axis);
  if (std::find(taps.outside.begin(), taps.outside.end(), 1) != taps.outside.end())
    return std::nullopt;
  gpu_axis a{.in = axis.in, .out = axis.out};
  if (axis.in == axis.out && taps.is_identity(axis.in))
    return a;
  a.offset = resample_coordinate(options, axis, 0);
  if (axis.out > 1)
    a.slope = (resample_coordinate(options, axis, axis.out - 1) - a.offset) / static_cast<double>(axis.out - 1);
  a.taps = static_cast<uint32_t>(taps.count);
  if (options.mode == "nearest" && !fit_nearest(taps.indices, axis.in, axis.out, a.slope, a))
    return std::nullopt;
  return a;
}

/// Returns the merged axes, outermost first; nullopt if there are too many or one does not fit.
std::optional<std::vector<gpu_axis>> merged_axes(const resample_options& options,
                                                 const std::vector<resample_axis>& axes) {
  std::vector<gpu_axis> merged;
  for (const resample_axis& axis : axes) {
    const auto a = gpu_axis_of(options, axis);
    if (!a)
      return std::nullopt;
    if (!merged.empty() && merged.back().stays() && a->stays()) {
      merged.back().in *= a->in;
      merged.back().out *= a->out;
    } else {
      merged.push_back(*a);
    }
  }
  if (merged.size() > max_axes)
    return std::nullopt;
  merged.insert(merged.begin(), max_axes - merged.size(), gpu_axis{});
  return merged;
}

std::vector<uint32_t> parameters_of(std::span<const gpu_axis> axes, int64_t count, float cubic_a) {
  shader::resize block{.count = count, .cubic_a = cubic_a};
  for (size_t i = 0; i < axes.size(); ++i) {
    block.in_size[i] = axes[i].in;
    block.out_size[i] = axes[i].out;
    block.up[i] = axes[i].up;
    block.shift[i] = axes[i].shift;
    block.down[i] = axes[i].down;
    block.slope[i] = static_cast<float>(axes[i].slope);
    block.offset[i] = static_cast<float>(axes[i].offset);
  }
  return words_of(block);
}

launch_lists launch_resize(const gpu_call& call, const resample_options& options) {
  const operand &x = call.inputs[0], &y = call.outputs[0];
  const bool floats = x.type == dtype::float32 || x.type == dtype::float16;
  const bool bytes = x.type == dtype::int8 || x.type == dtype::uint8;
  const auto variant =
      floats || (bytes && options.mode == "nearest") ? arithmetic_variant(x.type, call.gpu) : std::nullopt;
  if (!variant || call.gpu.max_group_size < resize_group || (x.size() == 0 && y.size() != 0))
    return {};
  for (size_t i = 1; i < call.inputs.size(); ++i)
    if (call.has_input(i) && call.inputs[i].size() != 0 && !known_elements(call.inputs[i]).defined())
      return {};
  if (options.antialias || options.exclude_outside || options.coordinates == "tf_crop_and_resize")
    return resample_launches(call, options);
  std::optional<std::vector<gpu_axis>> axes(std::in_place, max_axes);
  if (x.size() != 0) {
    dry_call dry(call);
    axes = merged_axes(options, resize_axes(dry.context(), options));
  }
  if (!axes)
    return {};
  const bool fits_vectors = floats && axes->back().out % 4 == 0;
  launch_lists lists;
  for (const bool vectors : {true, false}) {
    if (vectors ? !fits_vectors : fits_vectors && call.ways != way_range::every)
      continue;
    const int64_t count = vectors ? y.size() / 4 : y.size();
    launch_builder b(call, "resize");
    launch& l = b.add("resize." + *variant, flat_groups(count, resize_group, call.gpu), {b.in(0), b.out(0)});
    l.constants = {vectors ? 1u : 0u};
    for (const gpu_axis& a : *axes)
      l.constants.push_back(a.taps);
    l.params = parameters_of(*axes, count, options.cubic_a);
    add_lists(lists, single_list(b));
  }
  return lists;
}

launch_lists upsample_launches(const gpu_call& call) {
  return launch_resize(call, resize_options(call.attrs, "Upsample"));
}

} // namespace

extern constinit const launch_rows resize_rules = {
    {"", "Resize", upsample_launches},
    {"", "Resize", [](const gpu_call& c) { return launch_resize(c, resize_options(c.attrs, "Resize")); }, 11},
    {"", "Upsample", upsample_launches},
};

} // namespace troupe
