// What the kernels of recurrent layers share (recurrent.cpp, attn_lstm.cpp): a cell's operands, and the LSTM's cell.
#pragma once

#include "ops/infer.hpp"
#include "ops/onnx/recurrent_activation.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace troupe {

/// In which directions a layer goes through its steps.
struct step_directions {
  int64_t count = 1;
  bool reverse = false; // of one direction
};

/// Returns what attribute `direction` says; throws `errc::invalid_model` if that is none.
inline step_directions directions_of(const attributes& attrs) {
  const std::string direction = word_of(attrs, "direction", "forward", {"forward", "reverse", "bidirectional"});
  return {direction == "bidirectional" ? 2 : 1, direction == "reverse"};
}

/// Returns what attribute `clip` limits a gate's sum to, infinity if it is not there.
inline double gate_limit(const attributes& attrs) {
  const float clip = attrs.real("clip", 0.f);
  return clip > 0 ? clip : std::numeric_limits<double>::infinity();
}

/// What a cell sees of one batch element: rows of H elements.
template <class C>
struct cell_operands {
  int64_t hidden;
  const C* projected; // gates·H: the input's part, bias included
  const C* recurrent; // gates·H: the state's part, bias included
  const C* peepholes; // 3·H or null
  C *h, *cell;        // state, updated in place
  const cell_activation* activation;
  double clip; // infinity if there is none
  bool flag;   // LSTM: input_forget; GRU: linear_before_reset

  double limit(double x) const { return std::clamp(x, -clip, clip); }
};

/// The activations of a direction if none are stated: of the gates, the new cell, the output.
inline std::vector<std::string> lstm_activations() {
  return {"sigmoid", "tanh", "tanh"};
}

/// LSTM (gates i o f c): C = f∘C + i∘c, h = o∘tanh(C); peepholes add P∘C to i, f (before) and o (after the update).
template <class C>
void lstm_cell(const cell_operands<C>& o) {
  const int64_t n = o.hidden;
  const auto gate = [&](int64_t which, int64_t j) {
    return static_cast<double>(o.projected[which * n + j]) + o.recurrent[which * n + j];
  };
  const auto peep = [&](int64_t which, int64_t j, double state) {
    return o.peepholes ? o.peepholes[which * n + j] * state : 0.0;
  };
  for (int64_t j = 0; j < n; ++j) {
    const double old = o.cell[j];
    const double in = o.activation[0](o.limit(gate(0, j) + peep(0, j, old)));
    const double forget = o.flag ? 1 - in : o.activation[0](o.limit(gate(2, j) + peep(2, j, old)));
    const double now = forget * old + in * o.activation[1](o.limit(gate(3, j)));
    const double out = o.activation[0](o.limit(gate(1, j) + peep(1, j, now)));
    o.cell[j] = static_cast<C>(now);
    // `clip` limits the sums of the gates. ONNX Runtime takes the new cell as it is, and models are tested with that.
    o.h[j] = static_cast<C>(out * o.activation[2](now));
  }
}

} // namespace troupe
