// LSTM layers of floats (the operator: ops/recurrent.cpp): gates i o f c, default activations, whole sequences.
//
// The input part of all steps is one product. A step adds h · Rᵀ, with Rᵀ packed as [H, 4·H] so that each element of the
// state scales one row; the packed matrix stays in a core's cache, and the two directions run on two threads.
#include "base/parallel.hpp"
#include "cpu/dnnl_compat.hpp"
#include "cpu/kernels.hpp"
#include "cpu/vector_math.hpp"
#include "ops/pack.hpp"

#include <algorithm>
#include <cstring>

namespace troupe {
namespace {

struct lstm_sizes {
  int64_t steps, batch, inputs, hidden, directions;
  bool reverse;
  int64_t gates() const { return 4 * hidden; }
};

/// sums[j] += Σ_i h[i] · r[i][j], eight rows at a time.
void add_state(const float* h, const float* r, int64_t hidden, int64_t gates, float* sums) {
  int64_t i = 0;
  for (; i + 8 <= hidden; i += 8) {
    const float* row = r + i * gates;
#pragma omp simd
    for (int64_t j = 0; j < gates; ++j) {
      float sum = sums[j];
      for (int64_t s = 0; s < 8; ++s)
        sum += h[i + s] * row[s * gates + j];
      sums[j] = sum;
    }
  }
  for (; i < hidden; ++i)
    for (int64_t j = 0; j < gates; ++j)
      sums[j] += h[i] * r[i * gates + j];
}

/// One cell update: `gates` holds i o f c before their activations.
void update_cell(const float* gates, int64_t hidden, float* c, float* h) {
  const float *in = gates, *out = gates + hidden, *forget = gates + 2 * hidden, *candidate = gates + 3 * hidden;
#pragma omp simd
  for (int64_t j = 0; j < hidden; ++j) {
    const float state = fast::sigmoid(forget[j]) * c[j] + fast::sigmoid(in[j]) * fast::tanh(candidate[j]);
    c[j] = state;
    h[j] = fast::sigmoid(out[j]) * fast::tanh(state);
  }
}

class lstm_kernel final : public kernel {
public:
  lstm_kernel(const kernel_request& r, const lstm_sizes& z)
      : z_(z), has_bias_(r.has_input(3)), scratch_(r.resources.scratch) {
    recurrent_ = r.resources.weights.get(pack(r.inputs[2].constant, r.inputs[2].dims, {0, 2, 1}));
    has_h_ = r.has_input(5);
    has_c_ = r.has_input(6);
    for (size_t i = 0; i < 3; ++i)
      has_output_[i] = r.has_output(i);
    // Gates of all steps, then the two states and the sum of the biases, for each direction.
    floats_ = z.steps * z.batch * z.gates() + 2 * z.batch * z.hidden + z.gates();
    floats_ = (floats_ + 15) / 16 * 16;
    scratch_.reserve(z.directions * floats_ * int64_t{sizeof(float)});
  }

  bool reads(size_t i) const override { return i != 2; }

  void run(const kernel_run& r) override {
    parallel_for(z_.directions, 1, [&](int64_t begin, int64_t end) {
      for (int64_t d = begin; d < end; ++d)
        run_direction(r, d);
    });
  }

private:
  void run_direction(const kernel_run& r, int64_t d) const {
    const int64_t gates = z_.gates(), state = z_.batch * z_.hidden;
    float* all = static_cast<float*>(scratch_.data()) + d * floats_;
    float *h = all + z_.steps * z_.batch * gates, *c = h + state, *bias = c + state;
    multiply_inputs(r, d, all);
    add_bias(r, d, bias, all);
    start(has_h_ ? r.in[5] : nullptr, d, h);
    start(has_c_ ? r.in[6] : nullptr, d, c);
    const bool backward = z_.reverse || d == 1;
    for (int64_t i = 0; i < z_.steps; ++i) {
      const int64_t t = backward ? z_.steps - 1 - i : i;
      for (int64_t b = 0; b < z_.batch; ++b) {
        float* sums = all + (t * z_.batch + b) * gates;
        add_state(h + b * z_.hidden, recurrent_->data<float>() + d * z_.hidden * gates, z_.hidden, gates, sums);
        update_cell(sums, z_.hidden, c + b * z_.hidden, h + b * z_.hidden);
      }
      if (has_output_[0])
        std::memcpy(r.output<float>(0) + (t * z_.directions + d) * state, h,
                    static_cast<size_t>(state) * sizeof(float));
    }
    if (has_output_[1])
      std::memcpy(r.output<float>(1) + d * state, h, static_cast<size_t>(state) * sizeof(float));
    if (has_output_[2])
      std::memcpy(r.output<float>(2) + d * state, c, static_cast<size_t>(state) * sizeof(float));
  }

  /// all = X · Wᵀ
  void multiply_inputs(const kernel_run& r, int64_t d, float* all) const {
    const float* w = r.input<float>(1) + d * z_.gates() * z_.inputs;
    dnnl::error::wrap_c_api(dnnl_sgemm('N', 'T', z_.steps * z_.batch, z_.gates(), z_.inputs, 1.f, r.input<float>(0),
                                       z_.inputs, w, z_.inputs, 0.f, all, z_.gates()),
                            "a oneDNN product failed");
  }

  void add_bias(const kernel_run& r, int64_t d, float* sum, float* all) const {
    if (!has_bias_)
      return;
    const int64_t gates = z_.gates();
    const float* bias = r.input<float>(3) + d * 2 * gates;
    for (int64_t j = 0; j < gates; ++j)
      sum[j] = bias[j] + bias[gates + j];
    for (int64_t row = 0; row < z_.steps * z_.batch; ++row)
      for (int64_t j = 0; j < gates; ++j)
        all[row * gates + j] += sum[j];
  }

  void start(const void* from, int64_t d, float* state) const {
    const int64_t count = z_.batch * z_.hidden;
    if (from)
      std::memcpy(state, static_cast<const float*>(from) + d * count, static_cast<size_t>(count) * sizeof(float));
    else
      std::fill_n(state, count, 0.f);
  }

  const lstm_sizes z_;
  bool has_bias_, has_h_ = false, has_c_ = false;
  bool has_output_[3] = {};
  int64_t floats_ = 0; // of scratch, for each direction
  weight_cache::handle recurrent_;
  scratch_buffer& scratch_;
};

/// Whether the operands fit each other; if dims were symbolic, nobody has looked before. The reference says what is wrong.
bool fits(const kernel_request& r, const lstm_sizes& z) {
  const shape state{z.directions, z.batch, z.hidden};
  const std::pair<size_t, shape> wanted[] = {{1, {z.directions, z.gates(), z.inputs}},
                                             {2, {z.directions, z.gates(), z.hidden}},
                                             {3, {z.directions, 2 * z.gates()}},
                                             {5, state},
                                             {6, state}};
  return std::all_of(std::begin(wanted), std::end(wanted), [&](const auto& operand) {
    return !r.has_input(operand.first) || r.inputs[operand.first].dims == operand.second;
  });
}

} // namespace

kernel_ptr make_lstm(const kernel_request& r) {
  const attributes& a = r.call.attrs;
  const std::string direction = a.text("direction", "forward");
  // sequence_lens is of integers, so its presence is refused here.
  if (!r.all_of_type(dtype::float32) || !r.all_plain() || r.has_input(7) || a.has("activations") || a.has("clip") ||
      a.integer("input_forget", 0) != 0 || a.integer("layout", 0) != 0 || !r.inputs[2].constant)
    return nullptr;
  const shape& x = r.inputs[0].dims;
  const lstm_sizes z{x[0], x[1], x[2], r.inputs[2].dims[2], r.inputs[2].dims[0], direction == "reverse"};
  if (volume(x) == 0 || z.hidden == 0 || !fits(r, z))
    return nullptr;
  return std::make_unique<lstm_kernel>(r, z);
}

} // namespace troupe
