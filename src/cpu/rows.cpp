// Operators on rows of floats that are together: softmax and the norms over the last axes, and their like over planes.
#include "base/parallel.hpp"
#include "cpu/fast_functions.hpp"
#include "cpu/kernels.hpp"

#include <cmath>
#include <cstring>

namespace troupe {
namespace {

/// Elements a thread should have.
constexpr int64_t grain_elements = 16 * 1024;

/// Runs `f(row)` for all rows.
template <class F>
void for_rows(int64_t rows, int64_t width, F f) {
  parallel_for(rows, std::max<int64_t>(1, grain_elements / std::max<int64_t>(1, width)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t row = begin; row < end; ++row)
                   f(row);
               });
}

class softmax_kernel final : public kernel {
public:
  softmax_kernel(int64_t rows, int64_t width) : rows_(rows), width_(width) {}

  void run(const kernel_run& r) override {
    for_rows(rows_, width_, [&](int64_t row) {
      float* y = r.output<float>(0) + row * width_;
      if (r.in[0] != r.out[0])
        std::memcpy(y, r.input<float>(0) + row * width_, static_cast<size_t>(width_) * sizeof(float));
      fast::softmax_row(y, width_);
    });
  }

private:
  int64_t rows_, width_;
};

/// y = (x − mean) · r · scale + bias, or without mean and bias for an RMS norm.
class row_norm_kernel final : public kernel {
public:
  row_norm_kernel(int64_t rows, int64_t width, float epsilon, bool centred)
      : rows_(rows), width_(width), epsilon_(epsilon), centred_(centred) {}

  void run(const kernel_run& r) override {
    const float *scale = r.input<float>(1), *bias = centred_ ? r.input<float>(2) : nullptr;
    for_rows(rows_, width_, [&](int64_t row) {
      const float* x = r.input<float>(0) + row * width_;
      float* y = r.output<float>(0) + row * width_;
      const auto width = static_cast<float>(width_);
      const float mean = centred_ ? fast::sum(x, width_) / width : 0.f;
      // A second pass over the cached row, because the difference of sums would cancel.
      const float factor = 1.f / std::sqrt(fast::sum_of_squares(x, width_, mean) / width + epsilon_);
      if (bias)
        for (int64_t i = 0; i < width_; ++i)
          y[i] = (x[i] - mean) * factor * scale[i] + bias[i];
      else
        for (int64_t i = 0; i < width_; ++i)
          y[i] = (x[i] - mean) * factor * scale[i];
    });
  }

private:
  int64_t rows_, width_;
  float epsilon_;
  bool centred_;
};

/// Returns the axis attribute `name` counted from the front, -1 where it is out of range.
int64_t axis_of(const kernel_request& r, int64_t otherwise) {
  const auto rank = static_cast<int64_t>(r.inputs[0].dims.size());
  const int64_t axis = r.call.attrs.integer("axis", otherwise);
  return axis < 0 ? axis + rank : axis;
}

} // namespace

kernel_ptr make_softmax(const kernel_request& r) {
  const shape& x = r.inputs[0].dims;
  if (!r.all_of_type(dtype::float32) || !r.all_plain() || x.empty() || volume(x) == 0)
    return nullptr;
  // Before opset 13 the axes from `axis` on are one.
  const bool joined = r.call.def->since < 13;
  const int64_t axis = axis_of(r, joined ? 1 : -1), rank = static_cast<int64_t>(x.size());
  if (axis < 0 || axis >= rank || (!joined && axis != rank - 1))
    return nullptr;
  const int64_t width = volume(std::span(x).subspan(static_cast<size_t>(axis)));
  return std::make_unique<softmax_kernel>(volume(x) / width, width);
}

kernel_ptr make_row_norm(const kernel_request& r) {
  const shape& x = r.inputs[0].dims;
  const bool centred = r.call.op_type == "LayerNormalization";
  if (!r.all_of_type(dtype::float32) || !r.all_plain() || volume(x) == 0 || r.has_output(1) || r.has_output(2) ||
      !r.has_input(1))
    return nullptr;
  const int64_t axis = axis_of(r, -1);
  if (axis < 0 || axis >= static_cast<int64_t>(x.size()))
    return nullptr;
  const shape normalised(x.begin() + axis, x.end());
  const int64_t width = volume(normalised);
  // Scales that broadcast inside the normalised axes are left to the reference.
  if (r.inputs[1].dims != normalised || (r.has_input(2) && r.inputs[2].dims != normalised))
    return nullptr;
  if (centred && !r.has_input(2))
    return nullptr;
  return std::make_unique<row_norm_kernel>(volume(x) / width, width, r.call.attrs.real("epsilon", 1e-5f), centred);
}

} // namespace troupe
