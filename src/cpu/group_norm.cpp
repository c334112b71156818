// InstanceNormalization and GroupNormalization of channels-last floats, and their fused forms: y = act((x − mean) /
// √(variance + epsilon) · scale + bias) with the statistics of a group of channels of one image.
//
// The channels of a pixel are together, so sums are kept by channel: in float over a strip of pixels, in double over
// the strips. Strips go to the threads.
#include "base/parallel.hpp"
#include "cpu/fast_functions.hpp"
#include "cpu/kernels.hpp"

#include <algorithm>
#include <cmath>

namespace troupe {
namespace {

/// Pixels whose sums are kept in float.
constexpr int64_t strip = 64;

class group_norm_kernel final : public kernel {
public:
  group_norm_kernel(const kernel_request& r, int64_t groups)
      : images_(r.inputs[0].dims[0]), channels_(r.inputs[0].dims[1]), groups_(groups), vectors_(r.inputs[1].size()),
        epsilon_(r.call.attrs.real("epsilon", 1e-5f)), act_(parse_activation(r.call.attrs)) {
    pixels_ = r.inputs[0].size() / (images_ * channels_);
    strips_ = (pixels_ + strip - 1) / strip;
    sums_.resize(static_cast<size_t>(strips_ * channels_));
    mean_.resize(static_cast<size_t>(channels_));
    factor_.resize(static_cast<size_t>(channels_));
    shift_.resize(static_cast<size_t>(channels_));
  }

  void run(const kernel_run& r) override {
    for (int64_t image = 0; image < images_; ++image) {
      const float* x = r.input<float>(0) + image * pixels_ * channels_;
      sum_strips(x, [](float v, float) { return v; });
      for (int64_t g = 0; g < groups_; ++g)
        spread(g, static_cast<float>(group_mean(g)), mean_);
      sum_strips(x, [](float v, float mean) { return (v - mean) * (v - mean); });
      set_factors(r);
      write(x, r.output<float>(0) + image * pixels_ * channels_);
    }
  }

private:
  int64_t group_width() const { return channels_ / groups_; }
  int64_t grain() const { return std::max<int64_t>(1, 16 * 1024 / (strip * channels_)); }

  /// sums_[strip][channel] = Σ f(x, mean of the channel's group)
  template <class F>
  void sum_strips(const float* x, F f) {
    parallel_for(strips_, grain(), [&](int64_t begin, int64_t end) {
      for (int64_t s = begin; s < end; ++s) {
        float* sums = sums_.data() + s * channels_;
        std::fill_n(sums, channels_, 0.f);
        for (int64_t p = s * strip; p < std::min(pixels_, (s + 1) * strip); ++p) {
          const float* pixel = x + p * channels_;
#pragma omp simd
          for (int64_t c = 0; c < channels_; ++c)
            sums[c] += f(pixel[c], mean_[static_cast<size_t>(c)]);
        }
      }
    });
  }

  /// Returns the sum of group `g` over all strips, divided by its elements.
  double group_mean(int64_t g) const {
    double total = 0;
    for (int64_t s = 0; s < strips_; ++s)
      for (int64_t c = g * group_width(); c < (g + 1) * group_width(); ++c)
        total += sums_[static_cast<size_t>(s * channels_ + c)];
    return total / static_cast<double>(group_width() * pixels_);
  }

  void spread(int64_t g, float value, std::vector<float>& to) const {
    std::fill_n(to.begin() + g * group_width(), group_width(), value);
  }

  void set_factors(const kernel_run& r) {
    const float *scale = r.input<float>(1), *bias = r.input<float>(2);
    for (int64_t g = 0; g < groups_; ++g)
      spread(g, static_cast<float>(1 / std::sqrt(group_mean(g) + epsilon_)), factor_);
    for (int64_t c = 0; c < channels_; ++c) {
      const auto at = static_cast<size_t>(c);
      const int64_t vector = c / (channels_ / vectors_);
      factor_[at] *= scale[vector];
      shift_[at] = bias[vector];
    }
  }

  void write(const float* x, float* y) const {
    parallel_for(strips_, grain(), [&](int64_t begin, int64_t end) {
      for (int64_t s = begin; s < end; ++s) {
        const int64_t last = std::min(pixels_, (s + 1) * strip);
        for (int64_t p = s * strip; p < last; ++p)
#pragma omp simd
          for (int64_t c = 0; c < channels_; ++c)
            y[p * channels_ + c] =
                (x[p * channels_ + c] - mean_[static_cast<size_t>(c)]) * factor_[static_cast<size_t>(c)] +
                shift_[static_cast<size_t>(c)];
        float* written = y + s * strip * channels_;
        if (act_.code != scalar_code::same)
          fast::activate(act_, written, written, (last - s * strip) * channels_);
      }
    });
  }

  int64_t images_, channels_, groups_, vectors_, pixels_ = 0, strips_ = 0;
  double epsilon_;
  activation act_;
  std::vector<float> sums_, mean_, factor_, shift_;
};

} // namespace

kernel_ptr make_group_norm(const kernel_request& r) {
  const operand& x = r.inputs[0];
  if (!r.all_of_type(dtype::float32) || x.size() == 0 || x.dims.size() < 3 || r.layout_of(x) != layout::channels_last ||
      r.layout_of(r.outputs[0]) != layout::channels_last)
    return nullptr;
  const int64_t channels = x.dims[1];
  const int64_t groups = r.call.op_type == "InstanceNormalization" ? channels : r.call.attrs.integer("num_groups");
  if (groups < 1 || channels % groups != 0 || r.inputs[1].size() < 1 || channels % r.inputs[1].size() != 0 ||
      r.inputs[2].size() != r.inputs[1].size())
    return nullptr;
  return std::make_unique<group_norm_kernel>(r, groups);
}

} // namespace troupe
