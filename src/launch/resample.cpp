#include "launch/resample.hpp"

#include "launch/movement.hpp"
#include "launch/parameters.hpp"
#include "ops/onnx/resize.hpp"

#include <algorithm>
#include <cmath>

namespace troupe {
namespace {

/// The part of a call that one launch does: an axis, with the sizes before and after it.
struct resample_pass {
  size_t at;
  int64_t outer, inner;
};

/// Half the number of taps, as in ops/onnx/resample.cpp.
double radius_of(const resample_options& options, double shrink) {
  return std::ceil((options.mode == "cubic" ? 2 : 1) / shrink);
}

shader::resample parameters_of(const resample_options& options, const resample_axis& axis, const resample_taps& taps,
                               const resample_pass& pass, float fill) {
  const auto first = std::find(taps.outside.begin(), taps.outside.end(), 0);
  const auto last = std::find(first, taps.outside.end(), 1); // places are affine: what is inside is one range
  const double shrink = options.antialias ? std::min(axis.scale, 1.0) : 1.0;
  const double offset = resample_coordinate(options, axis, 0);
  const double slope =
      axis.out > 1 ? (resample_coordinate(options, axis, axis.out - 1) - offset) / static_cast<double>(axis.out - 1)
                   : 0;
  return {.count = pass.outer * axis.out * pass.inner,
          .in_size = axis.in,
          .out_size = axis.out,
          .inner = pass.inner,
          .radius = static_cast<int64_t>(radius_of(options, shrink)),
          .inside_begin = first - taps.outside.begin(),
          .inside_end = last - taps.outside.begin(),
          .slope = static_cast<float>(slope),
          .offset = static_cast<float>(offset),
          .shrink = static_cast<float>(shrink),
          .cubic_a = options.cubic_a,
          .outside = fill};
}

} // namespace

launch_lists resample_launches(const gpu_call& call, const resample_options& options) {
  const operand &x = call.inputs.at(0), &y = call.outputs.at(0);
  const auto variant = float_variant(x.type, call.gpu);
  if (!variant || options.mode == "nearest" || x.layout != layout::plain || y.layout != layout::plain || x.size() == 0)
    return {};
  dry_call dry(call);
  const std::vector<resample_axis> axes = resize_axes(dry.context(), options);
  std::vector<resample_taps> taps;
  std::vector<size_t> changing;
  for (const resample_axis& axis : axes) {
    taps.push_back(taps_of(options, axis));
    if (axis.in != axis.out || !taps.back().is_identity(axis.in))
      changing.push_back(taps.size() - 1);
  }
  const uint32_t flags = (options.mode == "cubic" ? shader::resample_cubic : 0) |
                         (options.exclude_outside ? shader::resample_excludes : 0) |
                         (options.exclude_outside || options.antialias ? shader::resample_normalises : 0);
  launch_builder b(call, "resample");
  if (changing.empty() && !add_whole_copy(b, call, 0, 0))
    return {};
  shape dims = x.dims;
  launch_binding from = b.in(0);
  for (const size_t at : changing) {
    const bool first = at == changing.front(), last = at == changing.back();
    const resample_pass pass{at, volume(std::span(dims).first(at)), volume(std::span(dims).subspan(at + 1))};
    dims[at] = axes[at].out;
    const launch_binding to = last ? b.out(0) : written(b.scratch(std::max<int64_t>(volume(dims), 1) * 4));
    launch& l = b.add(fmt::format("resample.{}_{}", first ? *variant : "f32", last ? *variant : "f32"),
                      flat_groups(volume(dims), 128, call.gpu), {from, to});
    l.constants = {flags};
    l.params = words_of(parameters_of(options, axes[at], taps[at], pass, call.attrs.real("extrapolation_value", 0)));
    from = reading(to);
    b.next_step();
  }
  return single_list(b);
}

} // namespace troupe
