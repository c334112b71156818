// DynamicQuantizeLinear: the range of all elements, then their quantised form, in vectorised passes on several threads.
#include "base/parallel.hpp"
#include "cpu/kernels.hpp"
#include "ops/quantization.hpp"

#include <algorithm>
#include <array>

namespace troupe {
namespace {

constexpr int64_t lanes = 64, dynamic_grain = 32 * 1024;

struct float_range {
  float low = 0, high = 0;
};

/// Returns the smallest and largest element, or 0; NaN counts as neither.
float_range range_of_part(const float* x, int64_t count) {
  std::array<float, lanes> low{}, high{};
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    for (size_t l = 0; l < lanes; ++l) {
      const float v = x[i + static_cast<int64_t>(l)];
      low[l] = v < low[l] ? v : low[l];
      high[l] = v > high[l] ? v : high[l];
    }
  for (size_t l = 0; i < count; ++i, ++l) {
    low[l] = x[i] < low[l] ? x[i] : low[l];
    high[l] = x[i] > high[l] ? x[i] : high[l];
  }
  return {*std::min_element(low.begin(), low.end()), *std::max_element(high.begin(), high.end())};
}

/// A function of its own: what a lambda has captured may alias the bytes that it writes, and its loop would not be
/// vectorised.
void quantize_part(const float* x, int64_t count, float scale, float zero, uint8_t* y) {
  const quantized_range range = range_of(dtype::uint8);
#pragma omp simd
  for (int64_t i = 0; i < count; ++i)
    y[i] = static_cast<uint8_t>(static_cast<int32_t>(saturated(x[i] / scale, zero, range)));
}

class dynamic_quantize_kernel final : public kernel {
public:
  explicit dynamic_quantize_kernel(const kernel_request& r)
      : size_(r.inputs[0].size()), parts_((size_ + dynamic_grain - 1) / dynamic_grain) {
    for (size_t i = 0; i < has_.size(); ++i)
      has_[i] = r.has_output(i);
    ranges_.resize(static_cast<size_t>(parts_));
  }

  void run(const kernel_run& r) override {
    const float* x = r.input<float>(0);
    parallel_for(parts_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        ranges_[static_cast<size_t>(i)] =
            range_of_part(x + i * dynamic_grain, std::min(dynamic_grain, size_ - i * dynamic_grain));
    });
    float_range all;
    for (const float_range& part : ranges_)
      all = {std::min(all.low, part.low), std::max(all.high, part.high)};
    const quantized_range range = range_of(dtype::uint8);
    const float scale = all.high == all.low ? 1.f : (all.high - all.low) / 255.f;
    const float zero = saturated(-all.low / scale, 0, range);
    if (has_[0])
      quantize(x, scale, zero, r.output<uint8_t>(0));
    if (has_[1])
      *r.output<float>(1) = scale;
    if (has_[2])
      *r.output<uint8_t>(2) = static_cast<uint8_t>(zero);
  }

private:
  void quantize(const float* x, float scale, float zero, uint8_t* y) const {
    parallel_for(size_, dynamic_grain,
                 [&](int64_t begin, int64_t end) { quantize_part(x + begin, end - begin, scale, zero, y + begin); });
  }

  int64_t size_, parts_;
  std::array<bool, 3> has_{};
  std::vector<float_range> ranges_; // by part
};

} // namespace

kernel_ptr make_dynamic_quantize(const kernel_request& r) {
  const bool same_order = !r.has_output(0) || r.outputs[0].layout == r.inputs[0].layout;
  if (r.inputs[0].type != dtype::float32 || !same_order || r.inputs[0].size() == 0)
    return nullptr;
  return std::make_unique<dynamic_quantize_kernel>(r);
}

} // namespace troupe
