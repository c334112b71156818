// AttnLSTM of com.microsoft: an LSTM that looks something up in a memory after each step (Bahdanau, Cho, Bengio,
// "Neural machine translation by jointly learning to align and translate", ICLR 2015), as ONNX Runtime defines it.
//
// X, R, B, sequence_lens, initial_h, initial_c and P are those of LSTM (recurrent.cpp), forward, reverse or
// bidirectional, D directions of H elements; W [D, 4·H, inputs + A] takes what was found, A elements, after a step's
// input: zeros at first, after each step a = [h, context] · AW, or the context alone where there is no AW. The memory M
// [batch, memories, depth] has memory_seq_lens rows that count; a row m's score is v · tanh(m · MW + h · QW), and the
// context the mean of the rows, weighted by the softmax of their scores.
//   QW [D, H, scores]   MW [D, depth, scores]   v [D, scores]   AW [D, H + depth, A]
#include "ops/axes.hpp"
#include "ops/expansion.hpp"
#include "ops/gemm.hpp"
#include "ops/onnx/recurrent_cell.hpp"
#include "ops/operand.hpp"

#include <cmath>

namespace troupe {
namespace {

/// The inputs, in their order.
enum attn_input : size_t {
  in_x,
  in_w,
  in_r,
  in_b,
  in_lengths,
  in_h,
  in_c,
  in_p,
  in_qw,
  in_mw,
  in_v,
  in_m,
  in_m_lengths,
  in_aw
};

struct attn_dims {
  dim steps, batch, inputs, memories, depth, scores, found;
  int64_t hidden = 0, directions = 1;
  bool reverse = false;
};

/// Returns the sizes of a call; `dims_of(i)` are the dims of input i, and `has(i)` says whether it is there.
template <class DimsOf, class Has>
attn_dims parse_attn_dims(const attributes& attrs, const DimsOf& dims_of, const Has& has) {
  for (const size_t i : {in_qw, in_mw, in_v, in_m})
    if (!has(i))
      fail(errc::invalid_model, "input {} is missing", i);
  const symbolic_shape x = dims_of(in_x), weights = dims_of(in_mw), memory = dims_of(in_m);
  if (x.size() != 3 || weights.size() != 3 || memory.size() != 3)
    fail(errc::invalid_model, "input {}, memory {} and its weights {} must have rank 3", to_string(x),
         to_string(memory), to_string(weights));
  const step_directions directions = directions_of(attrs);
  attn_dims d{x[0], x[1], x[2], memory[1], memory[2], weights[2], memory[2]};
  d.hidden = attrs.integer("hidden_size");
  if (d.hidden < 1 || d.hidden > std::numeric_limits<int32_t>::max())
    fail(errc::invalid_model, "attribute 'hidden_size' is {}", d.hidden);
  d.directions = directions.count;
  d.reverse = directions.reverse;
  const dim n = d.directions, h = d.hidden;
  const auto check = [&](size_t input, symbolic_shape expected) {
    if (has(input))
      require_same_dims(dims_of(input), expected, fmt::format("input {} and what it must be", input));
  };
  if (has(in_aw)) {
    const symbolic_shape layer = dims_of(in_aw);
    check(in_aw, {n, d.depth + h, layer.empty() ? dim(0) : layer.back()});
    d.found = layer.back();
  }
  check(in_w, {n, 4 * d.hidden, d.inputs + d.found});
  check(in_r, {n, 4 * d.hidden, h});
  check(in_b, {n, 8 * d.hidden});
  check(in_lengths, {d.batch});
  check(in_h, {n, d.batch, h});
  check(in_c, {n, d.batch, h});
  check(in_p, {n, 3 * d.hidden});
  check(in_qw, {n, h, d.scores});
  check(in_mw, {n, d.depth, d.scores});
  check(in_v, {n, d.scores});
  check(in_m, {d.batch, d.memories, d.depth});
  check(in_m_lengths, {d.batch});
  return d;
}

void infer_attn_lstm(infer_context& c) {
  const attn_dims d = parse_attn_dims(
      c.attrs(), [&](size_t i) { return c.dims(i); }, [&](size_t i) { return c.has_input(i); });
  for (size_t i = 0; i < c.input_count(); ++i) {
    const dtype wanted = i == in_lengths || i == in_m_lengths ? dtype::int32 : c.type(0);
    if (c.has_input(i) && c.type(i) != wanted)
      fail(errc::invalid_model, "input {} is {}, not {}", i, to_string(c.type(i)), to_string(wanted));
  }
  parse_activations(c.attrs(), lstm_activations(), d.directions);
  const dim n = d.directions, h = d.hidden;
  c.set_output(0, c.type(0), {d.steps, n, d.batch, h});
  c.set_output(1, c.type(0), {n, d.batch, h});
  c.set_output(2, c.type(0), {n, d.batch, h});
}

/// Concrete sizes of one call.
struct attn_sizes {
  int64_t steps, batch, inputs, memories, depth, scores, found, hidden, directions;
  bool reverse;
};

/// Returns the lengths that an input states, each of 1 to `most`, or `most` where it is absent.
std::vector<int64_t> stated_lengths(const kernel_context& c, size_t input, int64_t batch, int64_t most) {
  if (!c.has_input(input))
    return std::vector<int64_t>(static_cast<size_t>(batch), most);
  std::vector<int64_t> lengths = to_int64(c.input(input));
  for (const int64_t length : lengths)
    if (length < 1 || length > most)
      fail(errc::invalid_input, "a length of input {} is {}, but must be 1 to {}", input, length, most);
  return lengths;
}

/// All operands of one call.
template <class C>
struct attn_operands {
  read_as<C> x, w, r, bias, initial_h, initial_c, peepholes, query, memory_weights, v, memory, layer;
  std::vector<int64_t> lengths, memory_lengths;
  write_as<C> y, y_h, y_c;

  attn_operands(const kernel_context& c, const attn_sizes& s)
      : x(c.input(in_x)), w(c.input(in_w)), r(c.input(in_r)), bias(optional_input(c, in_b)),
        initial_h(optional_input(c, in_h)), initial_c(optional_input(c, in_c)), peepholes(optional_input(c, in_p)),
        query(c.input(in_qw)), memory_weights(c.input(in_mw)), v(c.input(in_v)), memory(c.input(in_m)),
        layer(optional_input(c, in_aw)), lengths(stated_lengths(c, in_lengths, s.batch, s.steps)),
        memory_lengths(stated_lengths(c, in_m_lengths, s.batch, s.memories)), y(optional_output(c, 0)),
        y_h(optional_output(c, 1)), y_c(optional_output(c, 2)) {}
};

/// Adds x · weights to `sum`, a vector to a matrix [size, width].
template <class C>
void add_product(const C* x, int64_t size, const C* weights, int64_t width, C* sum) {
  gemm(1, width, size, x, size, weights, width, sum, width);
}

/// Looks things up in the memory of one batch element.
template <class C>
class memory_search {
public:
  memory_search(const attn_operands<C>& o, const attn_sizes& s, int64_t direction, int64_t b)
      : s_(s), memory_(o.memory.data() + b * s.memories * s.depth), v_(o.v.data() + direction * s.scores),
        query_(o.query.data() + direction * s.hidden * s.scores),
        layer_(o.layer ? o.layer.data() + direction * (s.hidden + s.depth) * s.found : nullptr),
        count_(o.memory_lengths[static_cast<size_t>(b)]), keys_(static_cast<size_t>(count_ * s.scores), C(0)) {
    gemm(count_, s.scores, s.depth, memory_, s.depth, o.memory_weights.data() + direction * s.depth * s.scores,
         s.scores, keys_.data(), s.scores);
  }

  /// Writes what is found with the state `h`.
  void find(const C* h, C* found) const {
    std::vector<C> context(static_cast<size_t>(s_.depth), C(0));
    const std::vector<C> weights = weights_of(h);
    add_product(weights.data(), count_, memory_, s_.depth, context.data());
    if (!layer_) {
      std::copy(context.begin(), context.end(), found);
      return;
    }
    std::fill_n(found, s_.found, C(0));
    add_product(h, s_.hidden, layer_, s_.found, found);
    add_product(context.data(), s_.depth, layer_ + s_.hidden * s_.found, s_.found, found);
  }

private:
  /// Returns the softmax of the scores of the memory's rows.
  std::vector<C> weights_of(const C* h) const {
    std::vector<C> query(static_cast<size_t>(s_.scores), C(0)), scores(static_cast<size_t>(count_));
    add_product(h, s_.hidden, query_, s_.scores, query.data());
    for (int64_t m = 0; m < count_; ++m) {
      double sum = 0;
      for (int64_t i = 0; i < s_.scores; ++i)
        sum += v_[i] * std::tanh(keys_[static_cast<size_t>(m * s_.scores + i)] + query[static_cast<size_t>(i)]);
      scores[static_cast<size_t>(m)] = static_cast<C>(sum);
    }
    const C most = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (C& score : scores)
      sum += score = std::exp(score - most);
    for (C& score : scores)
      score = static_cast<C>(score / sum);
    return scores;
  }

  const attn_sizes& s_;
  const C *memory_, *v_, *query_, *layer_;
  int64_t count_;
  std::vector<C> keys_; // of the rows that count: [count, scores]
};

/// The weights of one direction, as a step multiplies by them.
template <class C>
struct attn_weights {
  std::vector<C> w, r; // transposed: [inputs + found, 4·H], [H, 4·H]
  const C *w_bias = nullptr, *r_bias = nullptr, *peepholes = nullptr;
  const cell_activation* activations;
  double clip;
  bool input_forget;

  attn_weights(const attributes& attrs, const attn_operands<C>& o, const attn_sizes& s, int64_t direction,
               const cell_activation* functions)
      : activations(functions), clip(gate_limit(attrs)), input_forget(attrs.integer("input_forget", 0) != 0) {
    const int64_t width = 4 * s.hidden, columns = s.inputs + s.found;
    w = transposed(o.w.data() + direction * width * columns, width, columns);
    r = transposed(o.r.data() + direction * width * s.hidden, width, s.hidden);
    if (o.bias) {
      w_bias = o.bias.data() + direction * 2 * width;
      r_bias = w_bias + width;
    }
    if (o.peepholes)
      peepholes = o.peepholes.data() + direction * 3 * s.hidden;
  }

  /// Returns `bias`, or zeros.
  static std::vector<C> begin_with(const C* bias, int64_t width) {
    return bias ? std::vector<C>(bias, bias + width) : std::vector<C>(static_cast<size_t>(width), C(0));
  }
};

/// Runs all steps of one batch element in one direction.
template <class C>
void run_attn_sequence(attn_operands<C>& o, const attn_sizes& s, const attn_weights<C>& weights, int64_t direction,
                       int64_t b) {
  const int64_t h_size = s.hidden, width = 4 * h_size, length = o.lengths[static_cast<size_t>(b)];
  const int64_t state = (direction * s.batch + b) * h_size;
  const auto begin = [&](const read_as<C>& from) {
    return attn_weights<C>::begin_with(from ? from.data() + state : nullptr, h_size);
  };
  std::vector<C> h = begin(o.initial_h), cell = begin(o.initial_c), found(static_cast<size_t>(s.found), C(0));
  const memory_search<C> memory(o, s, direction, b);
  for (int64_t step = 0; step < length; ++step) {
    const int64_t t = s.reverse != (direction == 1) ? length - 1 - step : step;
    std::vector<C> projected = attn_weights<C>::begin_with(weights.w_bias, width),
                   recurrent = attn_weights<C>::begin_with(weights.r_bias, width);
    add_product(o.x.data() + (t * s.batch + b) * s.inputs, s.inputs, weights.w.data(), width, projected.data());
    add_product(found.data(), s.found, weights.w.data() + s.inputs * width, width, projected.data());
    add_product(h.data(), h_size, weights.r.data(), width, recurrent.data());
    lstm_cell(cell_operands<C>{h_size, projected.data(), recurrent.data(), weights.peepholes, h.data(), cell.data(),
                               weights.activations, weights.clip, weights.input_forget});
    memory.find(h.data(), found.data());
    if (o.y)
      std::copy(h.begin(), h.end(), o.y.data() + ((t * s.directions + direction) * s.batch + b) * h_size);
  }
  if (o.y_h)
    std::copy(h.begin(), h.end(), o.y_h.data() + state);
  if (o.y_c)
    std::copy(cell.begin(), cell.end(), o.y_c.data() + state);
}

void attn_lstm(kernel_context& c) {
  const attn_dims d = parse_attn_dims(
      c.attrs(), [&](size_t i) { return to_symbolic(c.input(i).dims); }, [&](size_t i) { return c.has_input(i); });
  const attn_sizes s{d.steps.constant(),  d.batch.constant(),
                     d.inputs.constant(), d.memories.constant(),
                     d.depth.constant(),  d.scores.constant(),
                     d.found.constant(),  d.hidden,
                     d.directions,        d.reverse};
  const auto activations = parse_activations(c.attrs(), lstm_activations(), s.directions);
  visit_compute(c.input(0).type, [&]<class C>(type_tag<C>) {
    attn_operands<C> o(c, s);
    if (s.batch > 0 && s.memories == 0)
      fail(errc::invalid_input, "the memory is empty");
    if (o.y)
      std::fill_n(o.y.data(), c.output(0).size(), C(0));
    for (int64_t direction = 0; direction < s.directions; ++direction) {
      const attn_weights<C> weights(c.attrs(), o, s, direction, activations.data() + direction * 3);
      parallel_for(s.batch, 1, [&](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; ++b)
          run_attn_sequence(o, s, weights, direction, b);
      });
    }
    o.y.commit();
    o.y_h.commit();
    o.y_c.commit();
  });
}

/// Two operations a weight, step and batch element, and for each of these the scores of the memory.
op_cost attn_lstm_cost(const attributes&, const call_shapes& call) {
  const auto size = [&](size_t i) { return static_cast<double>(volume(call.inputs[i])); };
  const shape& x = call.inputs[in_x];
  const double rows = static_cast<double>(x[0]) * static_cast<double>(x[1]);
  return {2 * rows * (size(in_w) + size(in_r) + size(in_qw)) + 2 * static_cast<double>(x[0]) * size(in_m),
          operand_bytes(call)};
}

/// The batch alone: each element has a memory of its own, too.
void attn_lstm_axes(call_axes& a) {
  constexpr size_t memory = 11, memory_lengths = 12;
  a.map({{0, 1}, {4, 0}, {5, 1}, {6, 1}, {memory, 0}, {memory_lengths, 0}}, {{0, 2}, {1, 1}, {2, 1}});
}

constexpr auto attn_lstm_rows = std::to_array<op_def>({
    op_row("AttnLSTM", 1, infer_attn_lstm, attn_lstm,
           {.domain = microsoft,
            .inputs = {3, 14},
            .max_outputs = 3,
            .types = types::floats,
            .first_output_optional = true,
            .cost = attn_lstm_cost,
            .axes = attn_lstm_axes}),
});

} // namespace

extern constinit const op_table contrib_attn_lstm_ops = attn_lstm_rows;

} // namespace troupe
