// LSTM, GRU and RNN: recurrent layers over a sequence, forward, backward or both.
//
// X is [steps, batch, inputs] (batch first if layout is 1), W [directions, gates·H, inputs], R [directions, gates·H,
// H], B [directions, 2·gates·H] (W's bias, then R's). The input part of all gates of all steps is one product before
// the loop; a step multiplies the state with R and applies the cell. Sequences shorter than `steps` keep their state
// and give zeros.
//
//   LSTM (gates i o f c): C = f∘C + i∘c, h = o∘tanh(C)
//   peepholes add P∘C to i, f (before) and o (after the update)
//   GRU  (gates z r h):   h = (1 − z)∘h' + z∘h, h' from r∘h (or r∘(h·R), with linear_before_reset)
//   RNN:                  h = f(x·W + h·R)
//
// Attribute quantized_state, which com.microsoft's DynamicQuantizeLSTM gives an LSTM: a step multiplies what
// DynamicQuantizeLinear's codes of the whole state stand for, those of sequences that have ended being 0.
#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/gemm.hpp"
#include "ops/onnx/recurrent_cell.hpp"
#include "ops/operand.hpp"
#include "ops/quantization.hpp"

#include <algorithm>

namespace troupe {
namespace {

enum class cell_kind : uint8_t { lstm, gru, rnn };

constexpr int64_t gates_of(cell_kind kind) {
  return kind == cell_kind::lstm ? 4 : kind == cell_kind::gru ? 3 : 1;
}

/// Which input holds the initial cell state and the peepholes (LSTM only).
constexpr size_t initial_h_input = 5, initial_c_input = 6, peephole_input = 7;

struct recurrent_dims {
  dim steps, batch, inputs, hidden;
  int64_t directions;
  bool reverse, batch_first;
};

template <cell_kind Kind, class DimsOf, class Has>
recurrent_dims parse_dims(const attributes& attrs, const DimsOf& dims_of, const Has& has) {
  const symbolic_shape x = dims_of(0), r = dims_of(2);
  if (x.size() != 3 || r.size() != 3)
    fail(errc::invalid_model, "input and recurrent weights have ranks {} and {}, but must have 3", x.size(), r.size());
  recurrent_dims d;
  d.batch_first = attrs.integer("layout", 0) != 0;
  const step_directions directions = directions_of(attrs);
  d.directions = directions.count;
  d.reverse = directions.reverse;
  d.steps = x[d.batch_first ? 1 : 0];
  d.batch = x[d.batch_first ? 0 : 1];
  d.inputs = x[2];
  d.hidden = r[2];
  if (attrs.has("hidden_size"))
    require_same(d.hidden, attrs.integer("hidden_size"), "hidden_size and the recurrent weights");
  const dim n = d.directions, rows = d.hidden * dim(gates_of(Kind));
  const symbolic_shape state =
      d.batch_first ? symbolic_shape{d.batch, n, d.hidden} : symbolic_shape{n, d.batch, d.hidden};
  const auto check = [&](size_t input, symbolic_shape expected) {
    if (has(input))
      require_same_dims(dims_of(input), expected, fmt::format("input {} and what it must be", input));
  };
  check(1, {n, rows, d.inputs});
  check(2, {n, rows, d.hidden});
  check(3, {n, rows + rows});
  check(4, {d.batch});
  check(initial_h_input, state);
  check(initial_c_input, state);
  check(peephole_input, {n, d.hidden * dim(3)});
  return d;
}

std::vector<std::string> default_activations(cell_kind kind) {
  switch (kind) {
    case cell_kind::lstm: return lstm_activations();
    case cell_kind::gru: return {"sigmoid", "tanh"};
    default: return {"tanh"};
  }
}

template <cell_kind Kind>
void infer_recurrent(infer_context& c) {
  const recurrent_dims d = parse_dims<Kind>(
      c.attrs(), [&](size_t i) { return c.dims(i); }, [&](size_t i) { return c.has_input(i); });
  parse_activations(c.attrs(), default_activations(Kind), d.directions);
  const dim n = d.directions;
  const symbolic_shape state =
      d.batch_first ? symbolic_shape{d.batch, n, d.hidden} : symbolic_shape{n, d.batch, d.hidden};
  c.set_output(0, c.type(0),
               d.batch_first ? symbolic_shape{d.batch, d.steps, n, d.hidden}
                             : symbolic_shape{d.steps, n, d.batch, d.hidden});
  c.set_output(1, c.type(0), state);
  c.set_output(2, c.type(0), state);
}

/// Concrete sizes of one call.
struct recurrent_sizes {
  int64_t steps, batch, inputs, hidden, directions;
  bool reverse, batch_first;

  /// Returns where row (step, batch element) of X starts.
  int64_t x_row(int64_t t, int64_t b) const { return batch_first ? b * steps + t : t * batch + b; }
  /// Returns which row of Y's H elements belongs to (step, direction, batch element).
  int64_t y_row(int64_t t, int64_t d, int64_t b) const {
    return batch_first ? (b * steps + t) * directions + d : (t * directions + d) * batch + b;
  }
  int64_t state_row(int64_t d, int64_t b) const { return batch_first ? b * directions + d : d * batch + b; }
};

template <class C>
void rnn_cell(const cell_operands<C>& o) {
  for (int64_t j = 0; j < o.hidden; ++j)
    o.h[j] = static_cast<C>(o.activation[0](o.limit(static_cast<double>(o.projected[j]) + o.recurrent[j])));
}

/// `weights` is R^T [H × 3·H], `bias` R's bias or null: without linear_before_reset the candidate multiplies r∘h
/// itself.
template <class C>
void gru_cell(const cell_operands<C>& o, const C* weights, const C* bias) {
  const int64_t n = o.hidden;
  std::vector<double> update(static_cast<size_t>(n)), reset(update);
  for (int64_t j = 0; j < n; ++j) {
    const auto at = static_cast<size_t>(j);
    update[at] = o.activation[0](o.limit(static_cast<double>(o.projected[j]) + o.recurrent[j]));
    reset[at] = o.activation[0](o.limit(static_cast<double>(o.projected[n + j]) + o.recurrent[n + j]));
  }
  std::vector<C> candidate(static_cast<size_t>(n), C(0));
  if (o.flag) {
    for (int64_t j = 0; j < n; ++j)
      candidate[static_cast<size_t>(j)] = static_cast<C>(reset[static_cast<size_t>(j)] * o.recurrent[2 * n + j]);
  } else {
    std::vector<C> reset_h(static_cast<size_t>(n));
    for (int64_t j = 0; j < n; ++j)
      reset_h[static_cast<size_t>(j)] = static_cast<C>(reset[static_cast<size_t>(j)] * o.h[j]);
    if (bias)
      candidate.assign(bias + 2 * n, bias + 3 * n);
    gemm(1, n, n, reset_h.data(), n, weights + 2 * n, 3 * n, candidate.data(), n);
  }
  for (int64_t j = 0; j < n; ++j) {
    const auto at = static_cast<size_t>(j);
    const double z = update[at];
    const double fresh = o.activation[1](o.limit(static_cast<double>(o.projected[2 * n + j]) + candidate[at]));
    o.h[j] = static_cast<C>((1 - z) * fresh + z * o.h[j]);
  }
}

/// All operands of one call.
template <class C>
struct call_operands {
  read_as<C> x, w, r, bias, initial_h, initial_c, peepholes;
  std::vector<int64_t> lengths;
  write_as<C> y, y_h, y_c;

  explicit call_operands(const kernel_context& c, const recurrent_sizes& s)
      : x(c.input(0)), w(c.input(1)), r(c.input(2)), bias(optional_input(c, 3)),
        initial_h(optional_input(c, initial_h_input)), initial_c(optional_input(c, initial_c_input)),
        peepholes(optional_input(c, peephole_input)), lengths(static_cast<size_t>(s.batch), s.steps),
        y(optional_output(c, 0)), y_h(optional_output(c, 1)), y_c(optional_output(c, 2)) {
    if (c.has_input(4))
      lengths = to_int64(c.input(4));
    for (int64_t length : lengths)
      if (length < 0 || length > s.steps)
        fail(errc::invalid_input, "a sequence length is {}, but there are {} steps", length, s.steps);
  }
};

/// Returns rows of `state` of direction `d`, zeros where it is absent: [batch × H].
template <class C>
std::vector<C> initial_state(const read_as<C>& state, const recurrent_sizes& s, int64_t d) {
  std::vector<C> rows(static_cast<size_t>(s.batch * s.hidden), C(0));
  for (int64_t b = 0; state && b < s.batch; ++b)
    std::copy_n(state.data() + s.state_row(d, b) * s.hidden, s.hidden, rows.data() + b * s.hidden);
  return rows;
}

template <class C>
void store_state(write_as<C>& to, const std::vector<C>& rows, const recurrent_sizes& s, int64_t d) {
  for (int64_t b = 0; to && b < s.batch; ++b)
    std::copy_n(rows.data() + b * s.hidden, s.hidden, to.data() + s.state_row(d, b) * s.hidden);
}

/// Returns X·W^T + W's bias for every row of X: [rows × width].
template <class C>
std::vector<C> project(const call_operands<C>& o, const recurrent_sizes& s, int64_t d, int64_t width) {
  const int64_t rows = s.steps * s.batch;
  std::vector<C> result(static_cast<size_t>(rows * width), C(0));
  for (int64_t i = 0; o.bias && i < rows; ++i)
    std::copy_n(o.bias.data() + d * 2 * width, width, result.data() + i * width);
  const std::vector<C> weights = transposed(o.w.data() + d * width * s.inputs, width, s.inputs);
  gemm(rows, width, s.inputs, o.x.data(), s.inputs, weights.data(), width, result.data(), width);
  return result;
}

/// Returns the state of all sequences of more than `step` elements as codes of 8 bits keep it.
template <class C>
std::vector<C> quantized_state(std::vector<C> h, const std::vector<int64_t>& lengths, int64_t step) {
  const size_t hidden = std::max<size_t>(1, h.size() / std::max<size_t>(1, lengths.size()));
  float low = 0, high = 0;
  for (size_t i = 0; i < h.size(); ++i) {
    if (step >= lengths[i / hidden])
      h[i] = 0;
    low = std::min(low, static_cast<float>(h[i]));
    high = std::max(high, static_cast<float>(h[i]));
  }
  const code_range codes(low, high);
  for (C& x : h)
    x = (codes.code(static_cast<float>(x)) - codes.zero()) * codes.scale();
  return h;
}

template <cell_kind Kind, class C>
void run_direction(const attributes& attrs, call_operands<C>& o, const recurrent_sizes& s, int64_t d,
                   const cell_activation* activation) {
  const int64_t width = gates_of(Kind) * s.hidden;
  const std::vector<C> projected = project(o, s, d, width);
  const std::vector<C> weights = transposed(o.r.data() + d * width * s.hidden, width, s.hidden);
  const C* bias = o.bias ? o.bias.data() + (d * 2 + 1) * width : nullptr;
  std::vector<C> h = initial_state(o.initial_h, s, d), cell = initial_state(o.initial_c, s, d);
  std::vector<C> recurrent(static_cast<size_t>(s.batch * width));
  const double clip = gate_limit(attrs);
  const bool flag = attrs.integer(Kind == cell_kind::lstm ? "input_forget" : "linear_before_reset", 0) != 0;
  const bool quantized = attrs.integer("quantized_state", 0) != 0;
  for (int64_t step = 0; step < s.steps; ++step) {
    std::fill(recurrent.begin(), recurrent.end(), C(0));
    for (int64_t b = 0; bias && b < s.batch; ++b)
      std::copy_n(bias, width, recurrent.data() + b * width);
    const std::vector<C> codes = quantized ? quantized_state(h, o.lengths, step) : std::vector<C>();
    gemm(s.batch, width, s.hidden, quantized ? codes.data() : h.data(), s.hidden, weights.data(), width,
         recurrent.data(), width);
    parallel_for(s.batch, std::max<int64_t>(1, 1024 / std::max<int64_t>(1, s.hidden)), [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        const int64_t length = o.lengths[static_cast<size_t>(b)];
        if (step >= length)
          continue;
        const int64_t t = s.reverse != (d == 1) ? length - 1 - step : step;
        const cell_operands<C> operands{s.hidden,
                                        projected.data() + s.x_row(t, b) * width,
                                        recurrent.data() + b * width,
                                        o.peepholes ? o.peepholes.data() + d * 3 * s.hidden : nullptr,
                                        h.data() + b * s.hidden,
                                        cell.data() + b * s.hidden,
                                        activation,
                                        clip,
                                        flag};
        if constexpr (Kind == cell_kind::lstm)
          lstm_cell(operands);
        else if constexpr (Kind == cell_kind::gru)
          gru_cell(operands, weights.data(), bias);
        else
          rnn_cell(operands);
        if (o.y)
          std::copy_n(operands.h, s.hidden, o.y.data() + s.y_row(t, d, b) * s.hidden);
      }
    });
  }
  store_state(o.y_h, h, s, d);
  store_state(o.y_c, cell, s, d);
}

template <cell_kind Kind>
void recurrent(kernel_context& c) {
  const recurrent_dims d = parse_dims<Kind>(
      c.attrs(), [&](size_t i) { return to_symbolic(c.input(i).dims); }, [&](size_t i) { return c.has_input(i); });
  const recurrent_sizes s{d.steps.constant(), d.batch.constant(), d.inputs.constant(), d.hidden.constant(),
                          d.directions,       d.reverse,          d.batch_first};
  const std::vector<std::string> defaults = default_activations(Kind);
  const std::vector<cell_activation> activations = parse_activations(c.attrs(), defaults, s.directions);
  visit_compute(c.input(0).type, [&]<class C>(type_tag<C>) {
    call_operands<C> operands(c, s);
    if (operands.y)
      std::fill_n(operands.y.data(), c.output(0).size(), C(0));
    for (int64_t direction = 0; direction < s.directions; ++direction)
      run_direction<Kind>(c.attrs(), operands, s, direction,
                          activations.data() + static_cast<size_t>(direction) * defaults.size());
    operands.y.commit();
    operands.y_h.commit();
    operands.y_c.commit();
  });
}

/// Two operations a weight, step and batch element.
op_cost recurrent_cost(const attributes&, const call_shapes& call) {
  const shape& x = call.inputs[0];
  const double rows = static_cast<double>(x[0]) * static_cast<double>(x[1]);
  const double weights = static_cast<double>(volume(call.inputs[1])) + static_cast<double>(volume(call.inputs[2]));
  return {2 * rows * weights, operand_bytes(call)};
}

/// The batch alone: weights are for all of it, lengths and initial states are each element's own.
void recurrent_axes(call_axes& a) {
  if (a.call().attrs().integer("quantized_state", 0) != 0)
    a.refuse("quantises the state of the whole batch with one scale");
  const bool first = a.call().attrs().integer("layout", 0) != 0;
  const size_t batch = first ? 0 : 1;
  a.map({{0, batch}, {4, 0}, {initial_h_input, batch}, {initial_c_input, batch}},
        {{0, first ? 0u : 2u}, {1, batch}, {2, batch}});
}

template <cell_kind Kind>
constexpr op_def row(std::string_view name) {
  return op_row(name, 1, infer_recurrent<Kind>, recurrent<Kind>,
                {.inputs = {3, Kind == cell_kind::lstm ? 8 : 6},
                 .max_outputs = Kind == cell_kind::lstm ? uint8_t{3} : uint8_t{2},
                 .types = types::floats,
                 .first_output_optional = true,
                 .cost = recurrent_cost,
                 .axes = recurrent_axes,
                 .mixes = "steps through"});
}

constexpr auto recurrent_rows = std::to_array<op_def>({
    row<cell_kind::lstm>("LSTM"),
    row<cell_kind::gru>("GRU"),
    row<cell_kind::rnn>("RNN"),
});

} // namespace

extern constinit const op_table onnx_recurrent_ops = recurrent_rows;

} // namespace troupe
