// Convolutions of channels-last floats with a filter a channel, along one or two axes, by constant weights: Y =
// act(conv(X, W) + B + residual). Memory limits them, so a row of the output is made in one pass over its input rows:
// the sums of some channels of a few neighbouring pixels stay in registers.
#include "base/parallel.hpp"
#include "base/round_up.hpp"
#include "cpu/conv_call.hpp"
#include "cpu/fast_functions.hpp"
#include "cpu/float_vector.hpp"
#include "cpu/kernels.hpp"
#include "cpu/panel_product.hpp"
#include "ops/pack.hpp"
#include "ops/window.hpp"

#include <algorithm>
#include <utility>

namespace troupe {
namespace {

/// Products that are worth a thread.
constexpr int64_t least_work = 100'000;
/// Neighbouring pixels whose sums are computed together, and vectors of sums: as many as hide what an addition takes.
constexpr int64_t pixels_at_once = 4, sums_at_once = 8;

struct depthwise_sizes {
  int64_t images, channels;
  window_axis rows, columns;
};

/// The taps that some neighbouring output pixels have inside of the image; the outputs of a row that have all taps.
struct tap_range {
  int64_t first, last;
};

/// Looking for the taps of each pixel takes as long as adding them.
tap_range outputs_inside(const window_axis& a) {
  const auto has_all = [&](int64_t o) { return a.first_tap(o) == 0 && a.last_tap(o) == a.kernel; };
  tap_range inside{0, a.out};
  while (inside.first < a.out && !has_all(inside.first))
    ++inside.first;
  while (inside.last > inside.first && !has_all(inside.last - 1))
    --inside.last;
  return inside;
}

/// Output pixels of one row to compute, and what they read.
struct pixel_call {
  const float* x; // where tap (0, 0) of the first pixel is or would be
  int64_t step;   // from one pixel's to the next one's
  const float* w; // [taps, channels]
  const float* bias;
  const float* residual; // of the first pixel; null for none, like bias
  float* y;
};

class depthwise_conv_kernel final : public kernel {
public:
  depthwise_conv_kernel(const kernel_request& r, const depthwise_sizes& s)
      : s_(s), inside_(outputs_inside(s.columns)),
        weights_(r.resources.weights.get(
            pack(r.inputs[1].constant, {s.channels, s.rows.kernel * s.columns.kernel}, {1, 0}))),
        bias_(r.has_input(2)), residual_(r.has_input(3)), after_(parse_activation(r.call.attrs)),
        limits_(take_limits(after_)) {}

  bool reads(size_t i) const override { return i != 1; }

  void run(const kernel_run& r) override {
    const int64_t work = s_.columns.out * s_.channels * s_.rows.kernel * s_.columns.kernel;
    parallel_for(s_.images * s_.rows.out, ceil_div(least_work, work), [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line)
        run_line(r, line);
    });
  }

private:
  void run_line(const kernel_run& r, int64_t line) const {
    const int64_t row = line % s_.rows.out, image = line / s_.rows.out, floats_of_line = s_.columns.out * s_.channels;
    const tap_range rows{s_.rows.first_tap(row), s_.rows.last_tap(row)}, all{0, s_.columns.kernel};
    const float* const x = r.input<float>(0) + (image * s_.rows.in + s_.rows.start(row)) * s_.columns.in * s_.channels;
    const auto at = [&](int64_t pixel) {
      const int64_t y = line * floats_of_line + pixel * s_.channels;
      return pixel_call{.x = x + s_.columns.start(pixel) * s_.channels,
                        .step = s_.columns.stride * s_.channels,
                        .w = weights_->data<float>(),
                        .bias = bias_ ? r.input<float>(2) : nullptr,
                        .residual = residual_ ? r.input<float>(3) + y : nullptr,
                        .y = r.output<float>(0) + y};
    };
    for (int64_t pixel = 0; pixel < s_.columns.out;) {
      const bool inside = pixel >= inside_.first && pixel < inside_.last;
      if (inside && pixel + pixels_at_once <= inside_.last) {
        run_pixels<pixels_at_once>(at(pixel), rows, all);
        pixel += pixels_at_once;
      } else {
        run_pixels<1>(at(pixel), rows,
                      inside ? all : tap_range{s_.columns.first_tap(pixel), s_.columns.last_tap(pixel)});
        ++pixel;
      }
    }
    if (after_.code != scalar_code::same) {
      float* const y = r.output<float>(0) + line * floats_of_line;
      fast::activate(after_, y, y, floats_of_line);
    }
  }

  template <int Pixels>
  void run_pixels(const pixel_call& c, const tap_range& rows, const tap_range& columns) const {
    constexpr int vectors = sums_at_once / Pixels;
    int64_t channel = 0;
    for (; channel + vectors * float_lanes <= s_.channels; channel += vectors * float_lanes)
      add_taps<Pixels, vectors, true>(c, rows, columns, channel);
    for (; channel < s_.channels; channel += float_lanes)
      add_taps<Pixels, 1, false>(c, rows, columns, channel);
  }

  /// Some vectors of channels from `channel` on, all of them `Whole` or one that may be beyond the end.
  template <int Pixels, int Vectors, bool Whole>
  void add_taps(const pixel_call& c, const tap_range& rows, const tap_range& columns, int64_t channel) const {
    const int64_t count = Whole ? float_lanes : s_.channels - channel; // of a vector's lanes
    float_vector sum[Pixels][Vectors];
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) {
      const float_vector bias = c.bias ? load_part(c.bias + channel + v * float_lanes, count) : float_vector{};
#pragma GCC unroll 8
      for (int p = 0; p < Pixels; ++p)
        sum[p][v] = bias;
    }
    for (int64_t i = rows.first; i < rows.last; ++i)
      for (int64_t j = columns.first; j < columns.last; ++j) {
        const float* const x =
            c.x + (i * s_.rows.dilation * s_.columns.in + j * s_.columns.dilation) * s_.channels + channel;
        const float* const w = c.w + (i * s_.columns.kernel + j) * s_.channels + channel;
#pragma GCC unroll 8
        for (int v = 0; v < Vectors; ++v) {
          const float_vector weight = load_part(w + v * float_lanes, count);
#pragma GCC unroll 8
          for (int p = 0; p < Pixels; ++p)
            sum[p][v] += load_part(x + p * c.step + v * float_lanes, count) * weight;
        }
      }
    const float_vector low = float_vector{} + limits_.low, high = float_vector{} + limits_.high;
#pragma GCC unroll 8
    for (int p = 0; p < Pixels; ++p)
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) {
        const int64_t at = p * s_.channels + channel + v * float_lanes;
        float_vector y = sum[p][v];
        if (c.residual)
          y += load_part(c.residual + at, count);
        y = y < low ? low : y;
        store_part(c.y + at, y > high ? high : y, count);
      }
  }

  const depthwise_sizes s_;
  const tap_range inside_; // of a row
  const weight_cache::handle weights_;
  const bool bias_, residual_;
  activation after_; // done to finished lines
  const value_limits limits_;
};

} // namespace

kernel_ptr make_depthwise_conv(const kernel_request& r) {
  const operand &x = r.inputs[0], &w = r.inputs[1], &y = r.outputs[0];
  const auto last = [&](const operand& o) { return r.layout_of(o) == layout::channels_last; };
  const bool layouts = last(x) && last(y) && (!r.has_input(3) || (last(r.inputs[3]) && r.inputs[3].dims == y.dims));
  if (x.dims.size() < 3 || x.dims.size() > 4 || !layouts || !r.all_of_type(dtype::float32) || !r.inputs[1].constant ||
      r.call.attrs.integer("group", 1) != x.dims[1] || w.dims[0] != x.dims[1] || volume(x.dims) == 0 ||
      volume(y.dims) == 0)
    return nullptr;
  const auto axes = axes_of_conv(r);
  if (!axes)
    return nullptr;
  return std::make_unique<depthwise_conv_kernel>(r, depthwise_sizes{x.dims[0], x.dims[1], (*axes)[1], (*axes)[2]});
}

} // namespace troupe
