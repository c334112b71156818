// Resize (opset 10, 11, 13, 18, 19) and Upsample (7, 9): every axis is resampled on its own (resample.hpp); nearest
// neighbours are one gather, linear and cubic run axis by axis in float (double for doubles).
//
// Sizes: given, or ⌊in × scale⌋ with the product rounded to float as ONNX Runtime does; a symbolic dim times a scale
// p/q is floor_div(in × p, q). `axes` (18) names the axes that scales, sizes and roi speak of; the others stay.
#include "ops/onnx/resize.hpp"

#include "base/parallel.hpp"
#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/infer.hpp"
#include "ops/movement.hpp"
#include "ops/onnx/axis_gather.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace troupe {
namespace {

constexpr int64_t resize_grain = 8 * 1024;

/// Where a row of the table finds its operands; no_input where it has none.
struct operands {
  size_t roi, scales, sizes;
};
constexpr size_t no_input = 99;

operands operands_of(size_t input_count) {
  return input_count > 2 ? operands{1, 2, 3} : operands{no_input, 1, no_input};
}

std::vector<size_t> resized_axes(const attributes& attrs, size_t rank) {
  if (attrs.has("axes"))
    return normalize_axes(attrs.integers("axes"), rank);
  std::vector<size_t> all(rank);
  for (size_t i = 0; i < rank; ++i)
    all[i] = i;
  return all;
}

void check_count(std::string_view what, size_t found, size_t wanted) {
  if (found != wanted)
    fail(errc::invalid_model, "{} has {} entries instead of {}", what, found, wanted);
}

/// `in` × scale, rounded down. A float that is the nearest to a fraction p/q keeps symbolic dims exact.
dim scaled(const dim& in, float scale) {
  if (!(scale > 0) || !std::isfinite(scale))
    fail(errc::invalid_model, "a scale of {} is not positive", scale);
  if (in.is_constant()) {
    const float product = static_cast<float>(in.constant()) * scale;
    if (!(product < 9e18f))
      fail(errc::invalid_model, "a dim of {} times {} is too large", in.constant(), scale);
    return static_cast<int64_t>(product);
  }
  for (int64_t q = 1; q <= 4096; ++q) {
    const double p = std::round(static_cast<double>(scale) * static_cast<double>(q));
    if (p > 0 && p < 1e9 && static_cast<float>(p / static_cast<double>(q)) == scale)
      return floor_div(in * dim(static_cast<int64_t>(p)), q);
  }
  fail(errc::unsupported, "the symbolic dim {} cannot be scaled by {}", in.to_string(), scale);
}

/// The scale that all axes share when the aspect ratio is kept: the smallest (not_larger) or largest of sizes / dims.
double common_scale(const std::string& policy, std::span<const int64_t> in, std::span<const int64_t> sizes,
                    std::span<const size_t> axes) {
  double scale = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (in[axes[i]] == 0)
      fail(errc::invalid_model, "an empty dim has no aspect ratio");
    const double own = static_cast<double>(sizes[i]) / static_cast<double>(in[axes[i]]);
    scale = i == 0 ? own : policy == "not_larger" ? std::min(scale, own) : std::max(scale, own);
  }
  return scale;
}

symbolic_shape sized(infer_context& c, std::span<const dim> sizes, std::span<const size_t> axes) {
  symbolic_shape out = c.dims(0);
  check_count("sizes", sizes.size(), axes.size());
  const std::string policy = c.attrs().text("keep_aspect_ratio_policy", "stretch");
  for (size_t i = 0; i < axes.size(); ++i)
    out[axes[i]] = sizes[i];
  if (policy != "stretch") {
    if (!is_constant(c.dims(0)) || !is_constant(sizes))
      fail(errc::unsupported, "keep_aspect_ratio_policy needs known dims, but the input is {}", to_string(c.dims(0)));
    const shape in = constants(c.dims(0));
    const double scale = common_scale(policy, in, constants(sizes), axes);
    for (size_t axis : axes)
      out[axis] = static_cast<int64_t>(std::floor(scale * static_cast<double>(in[axis]) + 0.5));
  }
  for (const dim& d : out)
    if (d.is_constant() && d.constant() < 0)
      fail(errc::invalid_model, "Resize to the negative size {}", d.constant());
  return out;
}

std::vector<double> optional_numbers(const tensor& t) {
  return t.defined() ? to_double(t.view()) : std::vector<double>{};
}

void check_words(const attributes& attrs) {
  word_of(attrs, "mode", "nearest", {"nearest", "linear", "cubic", "bilinear"});
  word_of(attrs, "coordinate_transformation_mode", "half_pixel",
          {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
           "tf_half_pixel_for_nn", "tf_crop_and_resize"});
  word_of(attrs, "nearest_mode", "round_prefer_floor", {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"});
  word_of(attrs, "keep_aspect_ratio_policy", "stretch", {"stretch", "not_larger", "not_smaller"});
}

void infer_resize(infer_context& c) {
  check_words(c.attrs());
  const operands at = operands_of(c.input_count());
  const symbolic_shape& in = c.dims(0);
  const auto axes = resized_axes(c.attrs(), in.size());
  if (c.has_input(at.sizes)) {
    const auto sizes = c.require_known(at.sizes);
    if (!sizes.empty() || in.empty()) {
      c.set_output(0, c.type(0), sized(c, sizes, axes));
      return;
    }
  }
  std::vector<double> scales;
  if (c.has_input(at.scales)) {
    const tensor t = c.constant(at.scales);
    if (!t.defined())
      fail(errc::unsupported, "the scales must be constant, but they are computed from data");
    scales = to_double(t.view());
  } else if (c.attrs().has("scales")) { // Upsample-7
    const auto stated = c.attrs().reals("scales", {});
    scales.assign(stated.begin(), stated.end());
  }
  check_count("scales", scales.size(), axes.size());
  std::vector<double> roi;
  if (c.attrs().text("coordinate_transformation_mode", "") == "tf_crop_and_resize" && c.has_input(at.roi))
    roi = optional_numbers(c.constant(at.roi));
  symbolic_shape out = in;
  for (size_t i = 0; i < axes.size(); ++i) {
    const double extent = roi.size() == 2 * axes.size() ? roi[i + axes.size()] - roi[i] : 1;
    out[axes[i]] = scaled(in[axes[i]], static_cast<float>(scales[i] * extent));
  }
  c.set_output(0, c.type(0), std::move(out));
}

} // namespace

resample_options resize_options(const attributes& attrs, std::string_view op) {
  resample_options options;
  options.mode = attrs.text("mode", "nearest");
  if (options.mode == "bilinear") // Upsample-1's name
    options.mode = "linear";
  const bool newer = attrs.has("coordinate_transformation_mode") || op == "Resize";
  options.coordinates = attrs.text("coordinate_transformation_mode", newer ? "half_pixel" : "asymmetric");
  options.nearest = attrs.text("nearest_mode", newer ? "round_prefer_floor" : "floor");
  options.shrinks_upwards = !newer; // opset 10 does not say; it is what ONNX Runtime computes
  options.cubic_a = attrs.real("cubic_coeff_a", -0.75f);
  options.antialias = attrs.integer("antialias", 0) != 0 && options.mode != "nearest";
  options.exclude_outside = attrs.integer("exclude_outside", 0) != 0;
  return options;
}

std::vector<resample_axis> resize_axes(const kernel_context& c, const resample_options& options) {
  const operands at = operands_of(c.input_count());
  const auto in = c.input(0).dims, out = c.output(0).dims;
  const auto named = resized_axes(c.attrs(), in.size());
  std::vector<resample_axis> axes(in.size());
  for (size_t i = 0; i < in.size(); ++i)
    axes[i] = {in[i], out[i], static_cast<double>(out[i]) / static_cast<double>(std::max<int64_t>(in[i], 1))};
  const auto numbers = [&](size_t i) { return c.has_input(i) ? to_double(c.input(i)) : std::vector<double>{}; };
  const auto sizes = at.sizes == no_input ? std::vector<double>{} : numbers(at.sizes);
  auto scales = numbers(at.scales);
  if (!c.has_input(at.scales) && c.attrs().has("scales")) {
    const auto stated = c.attrs().reals("scales", {});
    scales.assign(stated.begin(), stated.end());
  }
  const std::string policy = c.attrs().text("keep_aspect_ratio_policy", "stretch");
  if (!sizes.empty() && policy != "stretch") {
    check_count("sizes", sizes.size(), named.size());
    const double scale = common_scale(policy, in, to_int64(c.input(at.sizes)), named);
    scales.assign(named.size(), scale);
  } else if (!sizes.empty()) {
    scales.clear();
  }
  if (!scales.empty())
    check_count("scales", scales.size(), named.size());
  const auto roi =
      options.coordinates == "tf_crop_and_resize" && at.roi != no_input ? numbers(at.roi) : std::vector<double>{};
  if (!roi.empty())
    check_count("roi", roi.size(), 2 * named.size());
  for (size_t i = 0; i < named.size(); ++i) {
    if (!scales.empty())
      axes[named[i]].scale = scales[i];
    if (!roi.empty()) {
      axes[named[i]].roi_begin = roi[i];
      axes[named[i]].roi_end = roi[i + named.size()];
    }
  }
  return axes;
}

namespace {

/// Resamples one axis: y[outer, o, inner] = Σ weight · x[outer, index, inner].
template <class A>
void resample(const A* x, A* y, int64_t outer, int64_t in, int64_t out, int64_t inner, const resample_taps& taps) {
  parallel_for(outer * out, std::max<int64_t>(1, resize_grain / (inner * taps.count)), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const auto first = static_cast<size_t>(row % out * taps.count);
      const A* from = x + row / out * in * inner;
      A* to = y + row * inner;
      std::fill_n(to, inner, A(0));
      for (size_t k = first; k < first + static_cast<size_t>(taps.count); ++k) {
        const auto weight = static_cast<A>(taps.weights[k]);
        const A* source = from + taps.indices[k] * inner;
        if (weight != 0)
          for (int64_t i = 0; i < inner; ++i)
            to[i] += weight * source[i];
      }
    }
  });
}

template <class T, class A>
T narrow(A value) {
  if constexpr (std::is_integral_v<T>) // towards zero, like ONNX's reference, but saturating
    return value != value
               ? T(0)
               : static_cast<T>(std::clamp<double>(static_cast<double>(value),
                                                   static_cast<double>(std::numeric_limits<T>::min()),
                                                   std::nextafter(std::ldexp(1., std::numeric_limits<T>::digits), 0)));
  else
    return static_cast<T>(value);
}

template <class T>
void interpolate(kernel_context& c, const std::vector<resample_axis>& axes, const std::vector<resample_taps>& taps) {
  using A = std::conditional_t<std::is_same_v<T, double>, double, float>;
  shape dims(c.input(0).dims.begin(), c.input(0).dims.end());
  const T* x = c.input(0).as<T>();
  std::vector<A> values(x, x + volume(dims));
  for (size_t i = 0; i < axes.size(); ++i) {
    if (taps[i].is_identity(axes[i].in) && axes[i].in == axes[i].out)
      continue;
    const int64_t outer = product(dims, 0, i), inner = product(dims, i + 1, dims.size());
    dims[i] = axes[i].out;
    std::vector<A> next(static_cast<size_t>(volume(dims)));
    resample(values.data(), next.data(), outer, axes[i].in, axes[i].out, inner, taps[i]);
    values = std::move(next);
  }
  T* y = c.output(0).as<T>();
  parallel_for(c.output(0).size(), resize_grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      y[i] = narrow<T>(values[static_cast<size_t>(i)]);
  });
}

/// Puts the extrapolation value if a coordinate fell outside: a gather of the output onto itself.
void extrapolate(kernel_context& c, const std::vector<resample_taps>& taps, const tensor& fill) {
  const mutable_view& out = c.output(0);
  const auto any = [](const resample_taps& t) { return std::count(t.outside.begin(), t.outside.end(), 1) != 0; };
  if (std::none_of(taps.begin(), taps.end(), any))
    return;
  const shape strides = strides_of(out.dims);
  std::vector<std::vector<int64_t>> offsets;
  for (size_t i = 0; i < taps.size(); ++i) {
    auto& table = offsets.emplace_back();
    for (int64_t o = 0; o < out.dims[i]; ++o)
      table.push_back(taps[i].outside[static_cast<size_t>(o)] ? -1 : o * strides[i]);
  }
  std::vector<char> copy(out.as<char>(), out.as<char>() + out.bytes());
  gather_axes(out.type, copy.data(), out.data, offsets, fill.data());
}

void nearest(kernel_context& c, const std::vector<resample_taps>& taps, const tensor& fill) {
  const shape strides = strides_of(c.input(0).dims);
  std::vector<std::vector<int64_t>> offsets;
  for (size_t i = 0; i < taps.size(); ++i) {
    auto& table = offsets.emplace_back();
    for (size_t o = 0; o < taps[i].indices.size(); ++o)
      table.push_back(taps[i].outside[o] ? -1 : taps[i].indices[o] * strides[i]);
  }
  gather_axes(c.input(0).type, c.input(0).data, c.output(0).data, offsets, fill.data());
}

void resample_call(kernel_context& c, const resample_options& options) {
  if (c.output(0).size() == 0)
    return;
  if (c.input(0).size() == 0)
    fail(errc::invalid_input, "an empty tensor cannot be resized to {}", to_string(c.output(0).dims));
  const auto axes = resize_axes(c, options);
  std::vector<resample_taps> taps;
  taps.reserve(axes.size());
  for (const resample_axis& axis : axes)
    taps.push_back(taps_of(options, axis));
  visit_numeric(c.input(0).type, [&]<class T>(type_tag<T>) {
    const tensor fill = tensor::scalar(narrow<T>(c.attrs().real("extrapolation_value", 0)));
    if (axes.empty())
      c.output(0).as<T>()[0] = c.input(0).as<T>()[0];
    else if (options.mode == "nearest")
      nearest(c, taps, fill);
    else {
      interpolate<T>(c, axes, taps);
      extrapolate(c, taps, fill);
    }
  });
}

void resize_kernel(kernel_context& c) {
  resample_call(c, resize_options(c.attrs(), "Resize"));
}

/// Upsample, and Resize before it had modes (opset 10).
void upsample_kernel(kernel_context& c) {
  resample_call(c, resize_options(c.attrs(), "Upsample"));
}

/// A dim whose length stays is resampled onto itself, except in modes that move coordinates nevertheless.
void resize_axes(call_axes& a) {
  const infer_context& c = a.call();
  if (const std::string mode = c.attrs().text("coordinate_transformation_mode", ""); mode.starts_with("tf_"))
    fail(errc::unsupported, "may move coordinates along any axis (mode {})", mode);
  const auto resized = resized_axes(c.attrs(), c.rank(0));
  // One scale for all dims: that of a part may be another.
  const bool stretches = c.attrs().text("keep_aspect_ratio_policy", "stretch") == "stretch";
  for (size_t axis = 0; axis < c.rank(0); ++axis)
    if (const auto stated = std::ranges::find(resized, axis); stated == resized.end())
      a.map({{0, axis}}, axis);
    else if (stretches && c.dims(0)[axis] == a.result_dims()[axis])
      a.map({{0, axis}}, axis).sizes = {
          {operands_of(c.input_count()).sizes, static_cast<size_t>(stated - resized.begin())}};
}

/// The inputs after the first are known on the host: the scales, and from opset 11 on the region and the sizes too.
constexpr op_def resize_row(std::string_view name, int64_t since, int64_t until, operand_range inputs,
                            void (*reference)(kernel_context&) = upsample_kernel) {
  return op_row(name, since, infer_resize, reference,
                {.until = until,
                 .inputs = inputs,
                 .types = types::numeric,
                 .host_inputs = (1u << inputs.max) - 2,
                 .axes = resize_axes,
                 .mixes = "resamples"});
}

constexpr auto resize_rows = std::to_array<op_def>({
    resize_row("Upsample", 7, 8, {1, 1}),
    resize_row("Upsample", 9, 9, {2, 2}),
    resize_row("Resize", 10, 10, {2, 2}),
    resize_row("Resize", 11, op_def{}.until, {1, 4}, resize_kernel),
});

} // namespace

extern constinit const op_table onnx_resize_ops = resize_rows;

} // namespace troupe
