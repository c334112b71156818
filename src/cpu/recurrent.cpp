// LSTM, GRU and RNN layers of floats (the operators: ops/onnx/recurrent.cpp), with their default activations, an RNN's
// also Relu; whole sequences.
//
// The input part of all steps is one product by packed panels, to which the biases are added. A step adds h · Rᵀ. Rᵀ is
// packed as [gates, panels, H, P]: the P = 64 units of a panel stay in registers while the state's elements pass, and
// memory is read in its order. (Where H is not a multiple of 64, one panel has all units.) Two directions run on two
// threads if each one's Rᵀ fits a core's cache. Else, and if there is only one, a direction shares its panels out: a
// thread computes all gates of its units, so its part of Rᵀ stays in its core's cache; a step ends when all have ended.
// A GRU has a second part, since its candidate needs r ∘ h of all units, unless `linear_before_reset` takes
// r ∘ (h · Rᵀ).
#include "base/parallel.hpp"
#include "base/round_up.hpp"
#include "cpu/float_vector.hpp"
#include "cpu/kernels.hpp"
#include "cpu/panel_product.hpp"
#include "cpu/vector_math.hpp"
#include "ops/pack.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>

namespace troupe {
namespace {

enum class cell_kind : uint8_t { lstm, gru, gru_linear, rnn_tanh, rnn_relu };

constexpr int64_t gates_of(cell_kind kind) {
  return kind == cell_kind::lstm ? 4 : kind == cell_kind::gru || kind == cell_kind::gru_linear ? 3 : 1;
}

struct layer_sizes {
  int64_t steps, batch, inputs, hidden, directions;
  bool reverse;
  cell_kind kind;

  int64_t gates() const { return gates_of(kind) * hidden; }
  int64_t state() const { return batch * hidden; }
};

constexpr int64_t panel_units = 64;
constexpr int batch_at_once = float_lanes == 16 ? 4 : 1; // half of the registers

/// sums[b][j] += Σ_i h[b][i] · r[i][j] for the units j of a panel.
template <int Batch>
void add_panel(const float* h, int64_t hidden, const float* r, float* sums, int64_t sums_step) {
  constexpr int vectors = panel_units / float_lanes;
  float_vector s[Batch][vectors];
#pragma GCC unroll 4
  for (int b = 0; b < Batch; ++b)
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v)
      s[b][v] = reinterpret_cast<const float_vector*>(sums + b * sums_step)[v];
  for (int64_t i = 0; i < hidden; ++i) {
    const auto* row = reinterpret_cast<const float_vector*>(r + i * panel_units);
#pragma GCC unroll 4
    for (int b = 0; b < Batch; ++b)
#pragma GCC unroll 16
      for (int v = 0; v < vectors; ++v)
        s[b][v] += h[b * hidden + i] * row[v];
  }
#pragma GCC unroll 4
  for (int b = 0; b < Batch; ++b)
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v)
      reinterpret_cast<float_vector*>(sums + b * sums_step)[v] = s[b][v];
}

/// The same for a panel of all units, of which `count` are computed.
void add_units(const float* h, int64_t hidden, const float* r, int64_t count, float* sums) {
  constexpr int64_t rows = 8;
  int64_t i = 0;
  for (; i + rows <= hidden; i += rows) {
    const float* row = r + i * hidden;
#pragma omp simd
    for (int64_t j = 0; j < count; ++j) {
      float sum = sums[j];
      for (int64_t s = 0; s < rows; ++s)
        sum += h[i + s] * row[s * hidden + j];
      sums[j] = sum;
    }
  }
  for (; i < hidden; ++i)
    for (int64_t j = 0; j < count; ++j)
      sums[j] += h[i] * r[i * hidden + j];
}

/// What the units [begin, end) of one direction's step read and write. Rows of `sums` hold a batch element's gates
/// before their activations.
struct step_part {
  int64_t begin, end;
  const float* r; // of the direction, packed
  float* sums;
  const float* h;
  float* next_h;     // not h: other units still read that
  float* c;          // LSTM: the cell. GRU: r ∘ h, or h · Rᵀ of the candidate
  const float* bias; // of the candidate's h · Rᵀ, of a linear GRU; null for none
};

void lstm_units(const float* gates, int64_t n, const step_part& p, float* c, float* h) {
  const float *in = gates, *out = gates + n, *forget = gates + 2 * n, *candidate = gates + 3 * n;
#pragma omp simd
  for (int64_t j = p.begin; j < p.end; ++j) {
    const float state = fast::sigmoid(forget[j]) * c[j] + fast::sigmoid(in[j]) * fast::tanh(candidate[j]);
    c[j] = state;
    h[j] = fast::sigmoid(out[j]) * fast::tanh(state);
  }
}

/// The first part of a step of a plain GRU: gates z and r become numbers from 0 to 1, and r scales the state.
void gru_gates(float* gates, int64_t n, const step_part& p, const float* h, float* scaled) {
  float *update = gates, *reset = gates + n;
#pragma omp simd
  for (int64_t j = p.begin; j < p.end; ++j) {
    update[j] = fast::sigmoid(update[j]);
    scaled[j] = fast::sigmoid(reset[j]) * h[j];
  }
}

void gru_units(const float* gates, int64_t n, const step_part& p, const float* h, float* next) {
  const float *update = gates, *candidate = gates + 2 * n;
#pragma omp simd
  for (int64_t j = p.begin; j < p.end; ++j)
    next[j] = (1 - update[j]) * fast::tanh(candidate[j]) + update[j] * h[j];
}

void gru_linear_units(const float* gates, int64_t n, const step_part& p, const float* of_state, const float* h,
                      float* next) {
  const float *update = gates, *reset = gates + n, *candidate = gates + 2 * n;
#pragma omp simd
  for (int64_t j = p.begin; j < p.end; ++j) {
    const float z = fast::sigmoid(update[j]);
    next[j] = (1 - z) * fast::tanh(candidate[j] + fast::sigmoid(reset[j]) * of_state[j]) + z * h[j];
  }
}

void rnn_units(const float* gates, bool relu, const step_part& p, float* next) {
#pragma omp simd
  for (int64_t j = p.begin; j < p.end; ++j)
    next[j] = relu ? (gates[j] > 0 || gates[j] != gates[j] ? gates[j] : 0.f) : fast::tanh(gates[j]);
}

class recurrent_kernel final : public kernel {
public:
  recurrent_kernel(const kernel_request& r, const layer_sizes& z)
      : z_(z), has_bias_(r.has_input(3)), scratch_(r.resources.scratch) {
    if (z.hidden % panel_units != 0)
      panel_ = z.hidden;
    const shape by_panels{z.directions, gates_of(z.kind), z.hidden / panel_, panel_, z.hidden};
    recurrent_ = r.resources.weights.get(pack(r.inputs[2].constant, by_panels, {0, 1, 2, 4, 3}));
    const weight_cache::handle inputs =
        r.resources.weights.get(pack(r.inputs[1].constant, {z.directions, z.gates(), z.inputs}, {0, 1, 2, 1},
                                     {z.directions, ceil_div(z.gates(), panel_columns), z.inputs, panel_columns}));
    for (int64_t d = 0; d < z.directions; ++d)
      input_products_.emplace_back(inputs, z.gates(), std::vector<int64_t>{0}, z.inputs, activation{},
                                   d * ceil_div(z.gates(), panel_columns) * z.inputs * panel_columns);
    has_h_ = r.has_input(5);
    has_c_ = z.kind == cell_kind::lstm && r.has_input(6);
    for (size_t i = 0; i < (z.kind == cell_kind::lstm ? 3u : 2u); ++i)
      has_output_[i] = r.has_output(i);
    // Gates of all steps, then the state twice, the cell, and the biases, for each direction.
    floats_ = z.steps * z.batch * z.gates() + 3 * z.state() + z.gates();
    floats_ = (floats_ + 15) / 16 * 16;
    scratch_.reserve(z.directions * floats_ * int64_t{sizeof(float)});
  }

  bool reads(size_t i) const override { return i != 1 && i != 2; }

  void run(const kernel_run& r) override {
    constexpr int64_t most_floats = int64_t{1} << 18; // of Rᵀ that a core's cache keeps from step to step
    const bool at_once = z_.gates() * z_.hidden <= most_floats;
    parallel_for(z_.directions, at_once ? 1 : z_.directions, [&](int64_t begin, int64_t end) {
      for (int64_t d = begin; d < end; ++d)
        run_direction(r, d);
    });
  }

private:
  void run_direction(const kernel_run& r, int64_t d) const {
    const int64_t gates = z_.gates(), state = z_.state();
    float* all = static_cast<float*>(scratch_.data()) + d * floats_;
    float *h = all + z_.steps * z_.batch * gates, *next = h + state, *c = next + state, *bias = c + state;
    multiply_inputs(r, d, bias, all);
    start(has_h_ ? r.in[5] : nullptr, d, h);
    start(has_c_ ? r.in[6] : nullptr, d, c);
    step_part part{.begin = 0,
                   .end = z_.hidden,
                   .r = recurrent_->data<float>() + d * z_.hidden * gates,
                   .c = c,
                   .bias = z_.kind == cell_kind::gru_linear && has_bias_ ? bias + 2 * z_.hidden : nullptr};
    const bool backward = z_.reverse || d == 1;
    for (int64_t i = 0; i < z_.steps; ++i) {
      const int64_t t = backward ? z_.steps - 1 - i : i;
      part.sums = all + t * z_.batch * gates;
      part.h = h;
      part.next_h = next;
      step(part);
      std::swap(h, next);
      if (has_output_[0])
        std::memcpy(r.output<float>(0) + (t * z_.directions + d) * state, h,
                    static_cast<size_t>(state) * sizeof(float));
    }
    if (has_output_[1])
      std::memcpy(r.output<float>(1) + d * state, h, static_cast<size_t>(state) * sizeof(float));
    if (has_output_[2])
      std::memcpy(r.output<float>(2) + d * state, c, static_cast<size_t>(state) * sizeof(float));
  }

  /// Shares the units of a step out over threads, if they have work enough.
  void step(const step_part& all) const {
    constexpr int64_t worth_a_thread = 1 << 17; // multiplications: about 10 µs
    const int64_t units = panel_ == panel_units ? panel_units : 1;
    const auto for_units = [&](auto&& what) {
      parallel_for(z_.hidden / units, worth_a_thread / (units * z_.batch * z_.gates()) + 1,
                   [&](int64_t begin, int64_t end) {
                     step_part part = all;
                     part.begin = begin * units;
                     part.end = end * units;
                     what(part);
                   });
    };
    if (z_.kind != cell_kind::gru) {
      for_units([&](const step_part& p) { whole_step(p); });
      return;
    }
    for_units([&](const step_part& p) {
      for (int64_t gate : {0, 1})
        add_state(p, gate, p.h, p.sums + gate * z_.hidden, z_.gates());
      for (int64_t b = 0; b < z_.batch; ++b)
        gru_gates(p.sums + b * z_.gates(), z_.hidden, p, p.h + b * z_.hidden, p.c + b * z_.hidden);
    });
    for_units([&](const step_part& p) {
      add_state(p, 2, p.c, p.sums + 2 * z_.hidden, z_.gates());
      for (int64_t b = 0; b < z_.batch; ++b)
        gru_units(p.sums + b * z_.gates(), z_.hidden, p, p.h + b * z_.hidden, p.next_h + b * z_.hidden);
    });
  }

  /// A step in which no unit waits for another one.
  void whole_step(const step_part& p) const {
    const int64_t n = z_.hidden, gates = z_.gates();
    const bool linear = z_.kind == cell_kind::gru_linear;
    for (int64_t gate = 0; gate < (linear ? 2 : gates_of(z_.kind)); ++gate)
      add_state(p, gate, p.h, p.sums + gate * n, gates);
    if (linear) {
      for (int64_t b = 0; b < z_.batch; ++b)
        for (int64_t j = p.begin; j < p.end; ++j)
          p.c[b * n + j] = p.bias ? p.bias[j] : 0.f;
      add_state(p, 2, p.h, p.c, n);
    }
    for (int64_t b = 0; b < z_.batch; ++b) {
      const float *sums = p.sums + b * gates, *h = p.h + b * n;
      float *next = p.next_h + b * n, *c = p.c + b * n;
      if (z_.kind == cell_kind::lstm)
        lstm_units(sums, n, p, c, next);
      else if (linear)
        gru_linear_units(sums, n, p, c, h, next);
      else
        rnn_units(sums, z_.kind == cell_kind::rnn_relu, p, next);
    }
  }

  /// Adds `of` · Rᵀ of one gate to the part's units in `to`.
  void add_state(const step_part& p, int64_t gate, const float* of, float* to, int64_t to_step) const {
    const float* r = p.r + gate * z_.hidden * z_.hidden;
    if (panel_ != panel_units) {
      for (int64_t b = 0; b < z_.batch; ++b)
        add_units(of + b * z_.hidden, z_.hidden, r + p.begin, p.end - p.begin, to + b * to_step + p.begin);
      return;
    }
    for (int64_t unit = p.begin; unit < p.end; unit += panel_units) {
      const float* panel = r + unit * z_.hidden;
      int64_t b = 0;
      for (; b + batch_at_once <= z_.batch; b += batch_at_once)
        add_panel<batch_at_once>(of + b * z_.hidden, z_.hidden, panel, to + b * to_step + unit, to_step);
      for (; b < z_.batch; ++b)
        add_panel<1>(of + b * z_.hidden, z_.hidden, panel, to + b * to_step + unit, to_step);
    }
  }

  /// all = X · Wᵀ + both biases; but of a linear GRU's candidate only that of the input: the reset gate scales the
  /// other, which is left in `bias`.
  void multiply_inputs(const kernel_run& r, int64_t d, float* bias, float* all) const {
    const int64_t gates = z_.gates(), apart = z_.kind == cell_kind::gru_linear ? 2 * z_.hidden : gates;
    const float* of_input = has_bias_ ? r.input<float>(3) + d * 2 * gates : nullptr;
    for (int64_t j = 0; has_bias_ && j < gates; ++j)
      bias[j] = of_input[j] + (j < apart ? of_input[gates + j] : 0.f);
    const panel_product& product = input_products_[static_cast<size_t>(d)];
    const int64_t rows = z_.steps * z_.batch;
    constexpr int64_t worth_a_thread = 1 << 18; // multiplications
    parallel_for(product.panels(), worth_a_thread / (rows * z_.inputs * panel_columns) + 1,
                 [&](int64_t begin, int64_t end) {
                   product.run({.x = r.input<float>(0), .step = z_.inputs, .rows = rows, .residual = nullptr, .y = all},
                               begin, end, has_bias_ ? bias : nullptr);
                 });
    if (has_bias_)
      std::copy(of_input + gates + apart, of_input + 2 * gates, bias + apart);
  }

  void start(const void* from, int64_t d, float* state) const {
    const int64_t count = z_.state();
    if (from)
      std::memcpy(state, static_cast<const float*>(from) + d * count, static_cast<size_t>(count) * sizeof(float));
    else
      std::fill_n(state, count, 0.f);
  }

  const layer_sizes z_;
  int64_t panel_ = panel_units;
  bool has_bias_, has_h_ = false, has_c_ = false;
  bool has_output_[3] = {};
  int64_t floats_ = 0; // of scratch, for each direction
  weight_cache::handle recurrent_;
  std::vector<panel_product> input_products_; // by direction
  scratch_buffer& scratch_;
};

/// Whether the operands fit each other; symbolic dims have not been compared before. The reference kernel reports
/// what is wrong.
bool fits(const kernel_request& r, const layer_sizes& z) {
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

/// Whether all of an RNN's activations, if it names any, are this one.
bool all_activations_are(const attributes& a, std::string_view wanted) {
  const std::vector<std::string> names = a.texts("activations", {});
  return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    return std::equal(name.begin(), name.end(), wanted.begin(), wanted.end(),
                      [](unsigned char x, char y) { return std::tolower(x) == y; });
  });
}

kernel_ptr make_layer(const kernel_request& r, cell_kind kind) {
  const attributes& a = r.call.attrs;
  // sequence_lens is of integers, so its presence is refused here.
  if (!r.all_of_type(dtype::float32) || !r.all_plain() || r.has_input(7) || a.has("clip") ||
      a.integer("input_forget", 0) != 0 || a.integer("layout", 0) != 0 || !r.inputs[1].constant ||
      !r.inputs[2].constant)
    return nullptr;
  const shape& x = r.inputs[0].dims;
  const layer_sizes z{
      x[0], x[1], x[2], r.inputs[2].dims[2], r.inputs[2].dims[0], a.text("direction", "forward") == "reverse", kind};
  if (volume(x) == 0 || z.hidden == 0 || !fits(r, z))
    return nullptr;
  return std::make_unique<recurrent_kernel>(r, z);
}

} // namespace

kernel_ptr make_lstm(const kernel_request& r) {
  const bool quantized = r.call.attrs.integer("quantized_state", 0) != 0;
  return quantized || r.call.attrs.has("activations") ? nullptr : make_layer(r, cell_kind::lstm);
}

kernel_ptr make_gru(const kernel_request& r) {
  const bool linear = r.call.attrs.integer("linear_before_reset", 0) != 0;
  return r.call.attrs.has("activations") ? nullptr : make_layer(r, linear ? cell_kind::gru_linear : cell_kind::gru);
}

kernel_ptr make_rnn(const kernel_request& r) {
  if (all_activations_are(r.call.attrs, "tanh"))
    return make_layer(r, cell_kind::rnn_tanh);
  return all_activations_are(r.call.attrs, "relu") ? make_layer(r, cell_kind::rnn_relu) : nullptr;
}

} // namespace troupe
