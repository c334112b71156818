// Maxima of windows and planes, and means of planes, of floats, plain or channels-last, and means of windows of
// channels-last floats. oneDNN's maxima drop NaN and take the lowest finite number for −inf; its means of planes add
// floats one after the other, which loses three digits of a large plane.
#include "ops/onnx/pool.hpp"
#include "base/parallel.hpp"
#include "base/round_up.hpp"
#include "cpu/float_vector.hpp"
#include "cpu/kernels.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

namespace troupe {
namespace {

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();
/// Floats a thread should read.
constexpr int64_t floats_read = 32 * 1024;

/// NaN wins, whichever of the two it is.
inline float larger(float a, float b) {
  return b > a || b != b ? b : a;
}

/// y[i] = larger(y[i], x[i · Step])
template <int64_t Step>
void take_larger(const float* x, float* y, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i)
    y[i] = larger(y[i], x[i * Step]);
}

/// Calls `f(row)` with each input row under output line (od, oh), `row` counted in rows of the plane.
template <class F>
void for_rows(const window_axes& axes, int64_t od, int64_t oh, F f) {
  const auto& [d, h, w] = axes;
  for (int64_t td = d.first_tap(od); td < d.last_tap(od); ++td)
    for (int64_t th = h.first_tap(oh); th < h.last_tap(oh); ++th)
      f((d.start(od) + td * d.dilation) * h.in + h.start(oh) + th * h.dilation);
}

void take_larger(const float* x, int64_t step, float* y, int64_t count) {
  if (step == 1)
    return take_larger<1>(x, y, count);
  if (step == 2)
    return take_larger<2>(x, y, count);
  for (int64_t i = 0; i < count; ++i)
    y[i] = larger(y[i], x[i * step]);
}

/// Maxima of windows of plain floats.
class line_max_kernel final : public kernel {
public:
  line_max_kernel(const shape& x, const window_axes& axes) : planes_(x[0] * x[1]), axes_(axes) {}

  void run(const kernel_run& r) override {
    const window_axis &d = axes_[0], &h = axes_[1], &w = axes_[2];
    const int64_t in = d.in * h.in * w.in, lines = d.out * h.out, read = std::max<int64_t>(1, in / lines);
    parallel_for(planes_ * lines, std::max<int64_t>(1, floats_read / read), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        pool_line(r.input<float>(0) + i / lines * in, r.output<float>(0) + i * w.out, i % lines / h.out,
                  i % lines % h.out);
    });
  }

private:
  /// The maxima of the columns under the line first, then those of its windows.
  void pool_line(const float* x, float* y, int64_t od, int64_t oh) const {
    const window_axis& w = axes_[2];
    thread_local std::vector<float> columns;
    columns.assign(static_cast<size_t>(w.in), minus_infinity);
    for_rows(axes_, od, oh, [&](int64_t row) { take_larger<1>(x + row * w.in, columns.data(), w.in); });
    std::fill_n(y, w.out, minus_infinity);
    for (int64_t t = w.first_tap(w.out - 1); t < w.last_tap(0); ++t) {
      const int64_t at = t * w.dilation - w.pad_begin; // of output 0
      const int64_t first = at < 0 ? ceil_div(-at, w.stride) : 0;
      const int64_t last = std::min(w.out, at < w.in ? (w.in - 1 - at) / w.stride + 1 : 0);
      if (first < last)
        take_larger(columns.data() + at + first * w.stride, w.stride, y + first, last - first);
    }
  }

  const int64_t planes_;
  const window_axes axes_;
};

enum class pooling : uint8_t { maximum, mean, mean_with_padding };

/// Windows of channels-last floats: some channels of one output pixel at a time.
template <pooling Kind>
class pixel_pool_kernel final : public kernel {
public:
  pixel_pool_kernel(const shape& x, const window_axes& axes) : images_(x[0]), channels_(x[1]), axes_(axes) {}

  void run(const kernel_run& r) override {
    const window_axis &d = axes_[0], &h = axes_[1], &w = axes_[2];
    const int64_t in = d.in * h.in * w.in * channels_, lines = d.out * h.out;
    const int64_t read = std::max<int64_t>(1, in / lines);
    parallel_for(images_ * lines, std::max<int64_t>(1, floats_read / read), [&](int64_t begin, int64_t end) {
      thread_local std::vector<const float*> rows;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t od = i % lines / h.out, oh = i % lines % h.out;
        const float* const x = r.input<float>(0) + i / lines * in;
        rows.clear();
        for_rows(axes_, od, oh, [&](int64_t row) { rows.push_back(x + row * w.in * channels_); });
        pool_line(rows, terms(d, od) * terms(h, oh), r.output<float>(0) + i * w.out * channels_);
      }
    });
  }

private:
  /// Returns the taps that count in a mean.
  static int64_t terms(const window_axis& a, int64_t o) {
    if (Kind == pooling::mean_with_padding)
      return std::min(a.kernel, ceil_div(a.in + a.pad_end - a.start(o), a.dilation));
    return a.last_tap(o) - a.first_tap(o);
  }

  void pool_line(const std::vector<const float*>& rows, int64_t row_terms, float* y) const {
    for (int64_t ow = 0; ow < axes_[2].out; ++ow, y += channels_) {
      const auto count = static_cast<float>(row_terms * terms(axes_[2], ow));
      int64_t c = 0;
      for (; c + float_lanes <= channels_; c += float_lanes)
        pool<float_vector>(rows, ow, c, count, y + c);
      for (; c < channels_; ++c)
        pool<float>(rows, ow, c, count, y + c);
    }
  }

  template <class Lanes>
  void pool(const std::vector<const float*>& rows, int64_t ow, int64_t channel, float count, float* y) const {
    const window_axis& w = axes_[2];
    const int64_t first = w.first_tap(ow), last = w.last_tap(ow);
    Lanes made = Lanes{} + (Kind == pooling::maximum ? minus_infinity : 0.f);
    for (const float* row : rows)
      for (int64_t t = first; t < last; ++t) {
        const Lanes x = *reinterpret_cast<const Lanes*>(row + (w.start(ow) + t * w.dilation) * channels_ + channel);
        if constexpr (Kind == pooling::maximum) {
          made = x > made ? x : made;
          made = x != x ? x : made; // NaN wins
        } else {
          made += x;
        }
      }
    if constexpr (Kind != pooling::maximum)
      made /= count; // not a product with the inverse: what is quantised next may be at a tie
    *reinterpret_cast<Lanes*>(y) = made;
  }

  const int64_t images_, channels_;
  const window_axes axes_;
};

class plane_mean_kernel final : public kernel {
public:
  plane_mean_kernel(const shape& x, bool channels_last)
      : images_(x[0]), channels_(x[1]), pixels_(volume(std::span(x).subspan(2))), channels_last_(channels_last) {
    if (channels_last)
      sums_.resize(static_cast<size_t>(images_ * strips() * channels_));
  }

  void run(const kernel_run& r) override {
    channels_last_ ? add_strips(r.input<float>(0), r.output<float>(0))
                   : add_planes(r.input<float>(0), r.output<float>(0));
  }

private:
  /// Pixels that one thread adds up.
  static constexpr int64_t strip = 256;
  /// Channels that one thread adds up: their sums stay in registers and the first-level cache.
  static constexpr int64_t width = 128;

  int64_t strips() const { return ceil_div(pixels_, strip); }

  void add_planes(const float* x, float* y) const {
    parallel_for(images_ * channels_, std::max<int64_t>(1, floats_read / pixels_), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        const float* plane = x + p * pixels_;
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = 0; i < pixels_; ++i)
          sum += plane[i];
        y[p] = static_cast<float>(sum / static_cast<double>(pixels_));
      }
    });
  }

  void add_strips(const float* x, float* y) {
    const int64_t blocks = ceil_div(channels_, width), parts = strips() * blocks;
    parallel_for(images_ * parts, std::max<int64_t>(1, floats_read / (strip * width)), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        add_strip(x + i / parts * pixels_ * channels_, i / parts * strips() + i % parts / blocks,
                  i % parts / blocks * strip, i % blocks * width);
    });
    for (int64_t i = 0; i < images_ * channels_; ++i) {
      const double* from = sums_.data() + i / channels_ * strips() * channels_ + i % channels_;
      double sum = 0;
      for (int64_t s = 0; s < strips(); ++s)
        sum += from[s * channels_];
      y[i] = static_cast<float>(sum / static_cast<double>(pixels_));
    }
  }

  /// Adds up some channels of some pixels of an image into row `row` of the sums.
  void add_strip(const float* image, int64_t row, int64_t pixel, int64_t channel) {
    const int64_t count = std::min(width, channels_ - channel), end = std::min(pixels_, pixel + strip);
    double* sums = sums_.data() + row * channels_ + channel;
    std::fill_n(sums, count, 0.0);
    for (; pixel < end; ++pixel) {
      const float* from = image + pixel * channels_ + channel;
#pragma omp simd
      for (int64_t c = 0; c < count; ++c)
        sums[c] += from[c];
    }
  }

  const int64_t images_, channels_, pixels_;
  const bool channels_last_;
  std::vector<double> sums_; // channels-last: by image, strip and channel
};

/// Whether input and output are floats in one layout, and not empty.
bool takes_planes(const kernel_request& r) {
  const operand &x = r.inputs[0], &y = r.outputs[0];
  return x.type == dtype::float32 && !r.has_output(1) && x.dims.size() >= 3 && volume(x.dims) != 0 &&
         volume(y.dims) != 0 && r.layout_of(x) == r.layout_of(y);
}

/// Whether a window has no pixel at all.
bool has_empty_window(const window_axis& a) {
  for (int64_t o = 0; o < a.out; ++o)
    if (a.first_tap(o) >= a.last_tap(o))
      return true;
  return false;
}

} // namespace

kernel_ptr make_max_pool(const kernel_request& r) {
  const shape& x = r.inputs[0].dims;
  if (!takes_planes(r) || x.size() > 5)
    return nullptr;
  const window_spec spec = r.call.op_type == "GlobalMaxPool" ? plane_window(x) : parse_pool(r.call.attrs, x.size());
  const window_axes axes = bind_window(spec, std::span(x).subspan(2));
  if (r.layout_of(r.inputs[0]) == layout::channels_last)
    return std::make_unique<pixel_pool_kernel<pooling::maximum>>(x, axes);
  return std::make_unique<line_max_kernel>(x, axes);
}

kernel_ptr make_pixel_mean(const kernel_request& r) {
  const shape& x = r.inputs[0].dims;
  if (!takes_planes(r) || x.size() > 5 || r.layout_of(r.inputs[0]) != layout::channels_last)
    return nullptr;
  const window_spec spec = parse_pool(r.call.attrs, x.size());
  constexpr double most_terms = 1024; // added one after the other: an error grows with them
  if (std::accumulate(spec.kernel.begin(), spec.kernel.end(), 1.0, std::multiplies()) > most_terms)
    return nullptr;
  const window_axes axes = bind_window(spec, std::span(x).subspan(2));
  if (std::ranges::any_of(axes, has_empty_window))
    return nullptr;
  if (r.call.attrs.integer("count_include_pad", 0) != 0)
    return std::make_unique<pixel_pool_kernel<pooling::mean_with_padding>>(x, axes);
  return std::make_unique<pixel_pool_kernel<pooling::mean>>(x, axes);
}

kernel_ptr make_plane_mean(const kernel_request& r) {
  return takes_planes(r)
             ? std::make_unique<plane_mean_kernel>(r.inputs[0].dims, r.layout_of(r.inputs[0]) == layout::channels_last)
             : nullptr;
}

} // namespace troupe
