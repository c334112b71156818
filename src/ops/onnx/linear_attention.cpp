// LinearAttention: attention without a softmax, as a recurrence over a state S [key size, value size] for each head of
// keys and values.
//
//   at step t   S := e^decay · S  (by rows)                                      gated, gated_delta
//               d := beta · (v − Sᵀ k)                                           delta, gated_delta; else d := v
//               S := S + k dᵀ,   y := scale · Sᵀ q
//
// Query is [batch, T, q_heads · key size], key [batch, T, kv_heads · key size], value [batch, T, kv_heads · value
// size], decay like key or [batch, T, kv_heads], beta [batch, T, kv_heads] or [batch, T, 1], states [batch, kv_heads,
// key size, value size] (absent: zeros). Several query heads may share a head. The state is kept in float (float64: in
// double). Attribute chunk_size is about speed alone.
#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/infer.hpp"
#include "ops/operand.hpp"

#include <algorithm>
#include <cmath>

namespace troupe {
namespace {

constexpr size_t state_input = 3, decay_input = 4, beta_input = 5;

/// The sizes of a call, and what its rule reads.
struct recurrence {
  dim batch, steps, key_size, value_size;
  int64_t q_heads = 0, kv_heads = 0;
  bool decays = false, corrects = false; // by decay; by beta
  bool decays_rows = false;              // each row of a state by itself
  bool shares_beta = false;              // one for all heads
};

void read_rule(recurrence& r, const attributes& attrs) {
  const std::string rule = word_of(attrs, "update_rule", "gated_delta", {"linear", "gated", "delta", "gated_delta"});
  r.decays = rule == "gated" || rule == "gated_delta";
  r.corrects = rule == "delta" || rule == "gated_delta";
  r.q_heads = attrs.integer("q_num_heads");
  r.kv_heads = attrs.integer("kv_num_heads");
  if (r.kv_heads < 1 || r.q_heads < 1 || r.q_heads % r.kv_heads != 0)
    fail(errc::invalid_model, "{} heads of queries cannot share {} heads of keys", r.q_heads, r.kv_heads);
}

/// Returns how many elements each of `heads` heads has.
dim head_size(const symbolic_shape& operand, int64_t heads, const char* what) {
  if (operand.size() != 3)
    fail(errc::invalid_model, "{} of shape {} must have rank 3", what, to_string(operand));
  if (operand[2].is_constant() && operand[2].constant() % heads != 0)
    fail(errc::invalid_model, "{} of shape {} cannot be split into {} heads", what, to_string(operand), heads);
  return floor_div(operand[2], heads);
}

/// Reads decay and beta, which the rule must find.
template <class DimsOf, class Has>
void read_gates(recurrence& r, DimsOf&& dims_of, Has&& has) {
  const auto columns = [&](size_t i, const char* what) {
    if (!has(i))
      fail(errc::invalid_model, "attribute 'update_rule' needs {}, which is absent", what);
    const symbolic_shape d = dims_of(i);
    if (d.size() != 3 || !d[2].is_constant())
      fail(errc::unsupported, "{} of shape {}: rank 3 and a known last dim are needed", what, to_string(d));
    require_same_dims(d, symbolic_shape{r.batch, r.steps, d[2]}, fmt::format("{} and query", what));
    return d[2].constant();
  };
  if (r.decays) {
    const int64_t width = columns(decay_input, "decay");
    r.decays_rows = width != r.kv_heads;
    if (r.decays_rows)
      require_same(width, r.key_size * dim(r.kv_heads), "columns of decay and of key");
  }
  if (r.corrects) {
    const int64_t width = columns(beta_input, "beta");
    r.shares_beta = width != r.kv_heads;
    if (r.shares_beta)
      require_same(width, 1, "columns of beta (one, or one a head)");
  }
}

/// Parses a call and checks its operands' dims.
template <class DimsOf, class Has>
recurrence parse_recurrence(const attributes& attrs, DimsOf&& dims_of, Has&& has) {
  recurrence r;
  read_rule(r, attrs);
  const symbolic_shape q = dims_of(0), k = dims_of(1), v = dims_of(2);
  r.key_size = head_size(q, r.q_heads, "query");
  r.value_size = head_size(v, r.kv_heads, "value");
  r.batch = q[0];
  r.steps = q[1];
  require_same_dims(k, symbolic_shape{r.batch, r.steps, r.key_size * dim(r.kv_heads)}, "key and query");
  require_same_dims(v, symbolic_shape{r.batch, r.steps, v[2]}, "value and query");
  if (has(state_input))
    require_same_dims(dims_of(state_input), symbolic_shape{r.batch, r.kv_heads, r.key_size, r.value_size},
                      "past_state and heads");
  read_gates(r, dims_of, has);
  return r;
}

void infer_linear_attention(infer_context& c) {
  const recurrence r = parse_recurrence(
      c.attrs(), [&](size_t i) { return c.dims(i); }, [&](size_t i) { return c.has_input(i); });
  for (size_t i = 1; i < c.input_count(); ++i)
    if (c.has_input(i) && !(types::floats & set_of(c.type(i))))
      fail(errc::invalid_model, "input {} is of {}, not of floats", i, to_string(c.type(i)));
  c.set_output(0, c.type(0), {r.batch, r.steps, r.value_size * dim(r.q_heads)});
  c.set_output(1, c.has_input(state_input) ? c.type(state_input) : c.type(0),
               {r.batch, r.kv_heads, r.key_size, r.value_size});
}

/// The operands of a call as arrays of C, and its concrete sizes.
template <class C>
struct recurrence_arrays {
  read_as<C> q, k, v, decay, beta;
  int64_t steps, keys, values, kv_heads, group; // group: query heads to a head
  bool decays_rows, shares_beta;
  C scale;

  recurrence_arrays(const kernel_context& c, const recurrence& r)
      : q(c.input(0)), k(c.input(1)), v(c.input(2)), decay(r.decays ? c.input(decay_input) : const_view{}),
        beta(r.corrects ? c.input(beta_input) : const_view{}), steps(r.steps.constant()), keys(r.key_size.constant()),
        values(r.value_size.constant()), kv_heads(r.kv_heads), group(r.q_heads / r.kv_heads),
        decays_rows(r.decays_rows), shares_beta(r.shares_beta) {
    const float stated = c.attrs().real("scale", 0);
    scale = stated != 0 ? static_cast<C>(stated) : 1 / std::sqrt(static_cast<C>(std::max<int64_t>(1, keys)));
  }

  /// One step of head `h`; `row` counts steps over the batch, `d` has room for a value.
  void update(C* state, int64_t row, int64_t h, C* d) const {
    const int64_t at = row * kv_heads + h;
    const C *key = k.data() + at * keys, *value = v.data() + at * values;
    for (int64_t i = 0; decay && i < keys; ++i) {
      const C factor = std::exp(decays_rows ? decay[at * keys + i] : decay[at]);
      for (int64_t j = 0; j < values; ++j)
        state[i * values + j] *= factor;
    }
    std::copy_n(value, values, d);
    if (beta) {
      for (int64_t i = 0; i < keys; ++i)
        for (int64_t j = 0; j < values; ++j)
          d[j] -= state[i * values + j] * key[i];
      const C factor = shares_beta ? beta[row] : beta[at];
      for (int64_t j = 0; j < values; ++j)
        d[j] *= factor;
    }
    for (int64_t i = 0; i < keys; ++i)
      for (int64_t j = 0; j < values; ++j)
        state[i * values + j] += key[i] * d[j];
  }

  /// Reads a state with query head `g` of head `h`.
  void answer(const C* state, int64_t row, int64_t h, int64_t g, C* y) const {
    const int64_t at = (row * kv_heads + h) * group + g;
    const C* query = q.data() + at * keys;
    C* out = y + at * values;
    std::fill_n(out, values, C(0));
    for (int64_t i = 0; i < keys; ++i)
      for (int64_t j = 0; j < values; ++j)
        out[j] += query[i] * state[i * values + j];
    for (int64_t j = 0; j < values; ++j)
      out[j] *= scale;
  }
};

template <class C>
void run_recurrence(kernel_context& c, const recurrence& r) {
  const recurrence_arrays<C> a(c, r);
  const read_as<C> past(optional_input(c, state_input));
  write_as<C> y(c.output(0)), present(optional_output(c, 1));
  const int64_t area = a.keys * a.values;
  parallel_for(r.batch.constant() * a.kv_heads, 1, [&](int64_t begin, int64_t end) {
    std::vector<C> state(static_cast<size_t>(area)), d(static_cast<size_t>(a.values));
    for (int64_t s = begin; s < end; ++s) {
      if (past)
        std::copy_n(past.data() + s * area, area, state.data());
      else
        std::fill(state.begin(), state.end(), C(0));
      const int64_t h = s % a.kv_heads, first = s / a.kv_heads * a.steps;
      for (int64_t row = first; row < first + a.steps; ++row) {
        a.update(state.data(), row, h, d.data());
        for (int64_t g = 0; g < a.group; ++g)
          a.answer(state.data(), row, h, g, y.data());
      }
      if (present)
        std::copy(state.begin(), state.end(), present.data() + s * area);
    }
  });
  y.commit();
  present.commit();
}

void linear_attention(kernel_context& c) {
  const recurrence r = parse_recurrence(
      c.attrs(), [&](size_t i) { return to_symbolic(c.input(i).dims); }, [&](size_t i) { return c.has_input(i); });
  visit_compute(c.input(0).type, [&]<class T>(type_tag<T>) { run_recurrence<T>(c, r); });
}

/// Each step decays, reads and writes a state, and reads it for every query head.
op_cost linear_attention_cost(const attributes& attrs, const call_shapes& call) {
  const double heads = static_cast<double>(std::max<int64_t>(1, attrs.integer("kv_num_heads", 1)));
  const double value_size = static_cast<double>(call.inputs[2][2]) / heads;
  const double reads = static_cast<double>(volume(call.inputs[0])),
               writes = static_cast<double>(volume(call.inputs[1]));
  return {value_size * (2 * reads + 5 * writes), operand_bytes(call)};
}

constexpr auto linear_attention_rows = std::to_array<op_def>({
    op_row("LinearAttention", 27, infer_linear_attention, linear_attention,
           {.inputs = {3, 6},
            .max_outputs = 2,
            .types = types::floats,
            .cost = linear_attention_cost,
            .axes = axes::batch<1, 2, 3, 4, 5>,
            .mixes = "attends to what is along"}),
});

} // namespace

extern constinit const op_table onnx_linear_attention_ops = linear_attention_rows;

} // namespace troupe
