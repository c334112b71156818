// float32 → float16: which nodes compute in float16, and where the two types meet.
//
// One walk in node order. A float32 value is one of these:
//   literal  a constant: float16 for a node that computes in float16, as a recipe over the file's bytes;
//   wanted   float32 that should be float16 (model inputs, results of mixed chains): converted at the first reader
//            that wants it so;
//   half     made in float16;
//   exact    computed from integers, literals and exact values alone (positions, masks, tables), or by a node that must
//            compute in float32. Its readers stay in float32 too, until they mix it with values that are not exact: so
//            the angle of a rotary embedding, or a hand-written norm after its squares, keeps float32's digits and
//            range. What is dequantised is exact too: between two quantisations a float16 would end on the wrong step
//            now and then, which costs mobilenet_v2_qdq a relative error of 2.6e-2; its weights are 8-bit anyway.
// A node computes in float16 if it can and some float operand is not exact. Operands that the host must know (the
// scales of a Resize) keep their type. Every value is converted at most once each way.
//
// A cache that the caller gives and takes back with new rows (troupe.Append) stays float32, or each step would convert
// all of it: attention reads it as it is, and only new rows are converted.
//
// troupe.Projections whose results are the model's, logits for instance, write them in float32 (`wide`), unless a norm
// comes after them; other outputs are cast.
//
// Range: float16 ends at 65504. `troupe.ToFloat16` keeps finite what was finite: the −3.4e38 of an attention mask
// becomes −65504, not −inf, so that a row that is masked throughout is not NaN after its softmax.
#include "rewrite/precision.hpp"

#include "graph/bodies.hpp"
#include "ops/composed/fused_elementwise.hpp"
#include "ops/evaluate.hpp"
#include "ops/head_layout.hpp"
#include "rewrite/match.hpp"
#include "tensor/half_rows.hpp"

#include <cmath>

namespace troupe {
namespace {

/// Returns whether a fused chain ends in a result that may be far larger than its operands, or has larger immediates.
bool outgrows_float16(const node& n) {
  const elementwise_program program = parse_elementwise(n.attrs, n.inputs.size());
  const elementwise_step& last = program.steps.back();
  const bool square = last.code == scalar_code::multiply && last.a == last.b;
  return square || last.code == scalar_code::exp || last.code == scalar_code::pow ||
         std::any_of(program.constants.begin(), program.constants.end(),
                     [](float c) { return std::isfinite(c) && std::abs(c) > largest_float16; });
}

/// Returns whether a node must compute in float32 whatever its operands are.
bool needs_float32(const node& n) {
  if (is_own(n, "Elementwise"))
    return outgrows_float16(n);
  const bool square = is_op(n, "Mul") && n.inputs[0] == n.inputs[1];
  return square || n.def->needs_float32 || has_body(n);
}

/// Returns whether kernels that read float32 caches beside float16 compute what attention `n` asks for: nothing of
/// ONNX's Attention that they do not know.
bool takes_wide_caches(const node& n) {
  constexpr size_t lengths_input = 6;
  const bool has_lengths = n.domain.empty() && input_of(n, lengths_input) != no_value;
  return n.attrs.real("softcap", 0) == 0 && !has_lengths &&
         std::all_of(n.outputs.begin() + 1, n.outputs.end(), [](value_id v) { return v == no_value; });
}

class float16_conversion {
public:
  explicit float16_conversion(graph& g) : graph_(g) {
    for (size_t v = 0; v < g.values.size(); ++v)
      if (g.values[v].type == dtype::float32)
        state_of(static_cast<value_id>(v)) = g.values[v].constant ? state::literal : state::exact;
    for (value_id v : g.inputs)
      if (state_of(v) == state::exact)
        state_of(v) = state::wanted;
    for (value_id v : g.outputs)
      entry(v).is_output = true;
    for (const node& n : g.nodes)
      for (value_id v : n.inputs)
        if (v != no_value)
          entry(v).is_read = true;
    for (const node& n : g.nodes)
      if (is_own(n, "Append") && state_of(n.inputs[0]) == state::wanted && entry(n.outputs[0]).is_output &&
          attention_reads_wide(*g.values[n.inputs[0]].dims))
        entry(n.inputs[0]).is_cache = true;
  }

  void run() {
    std::vector<node> nodes = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (node& n : nodes) {
      if (!wants_float16(n) || !try_float16(n))
        stay_in_float32(n);
    }
  }

private:
  enum class state : uint8_t { not_float, literal, wanted, half, exact };

  /// What is known of one value; states as at the top of this file.
  struct converted {
    float16_conversion::state state = state::not_float;
    bool is_output = false;
    bool is_read = false;     // by a node
    bool is_cache = false;    // and stays float32
    value_id half = no_value; // its elements in float16, if a value holds them
    value_id full = no_value; // a half value's elements in float32
  };

  converted& entry(value_id v) {
    if (static_cast<size_t>(v) >= values_.size())
      values_.resize(graph_.values.size());
    return values_[v];
  }
  state& state_of(value_id v) { return entry(v).state; }

  /// Returns the slots of `n` that hold float32 operands which may change their type.
  std::vector<size_t> float_slots(const node& n) {
    std::vector<size_t> slots;
    for (size_t i = 0; i < n.inputs.size(); ++i)
      if (n.inputs[i] != no_value && state_of(n.inputs[i]) != state::not_float && !stays_wide(n, i) &&
          !(i < 32 && (n.def->host_inputs >> i & 1)))
        slots.push_back(i);
    return slots;
  }

  /// Whether input `i` is one of attention's two caches, if both stay float32.
  bool stays_wide(const node& n, size_t i) {
    return is_cache_input(n.domain, n.op_type, i) && takes_wide_caches(n) && entry(n.inputs[past_key_input]).is_cache &&
           entry(n.inputs[past_value_input]).is_cache;
  }

  bool wants_float16(const node& n) {
    const std::vector<size_t> slots = float_slots(n);
    if (is_own(n, "Append") && entry(n.inputs[0]).is_cache)
      return false;
    if (slots.empty() || needs_float32(n) || (slots[0] == 0 && !(n.def->types & set_of(dtype::float16))))
      return false;
    const auto any = [&](auto is) {
      return std::any_of(slots.begin(), slots.end(), [&](size_t i) { return is(state_of(n.inputs[i])); });
    };
    const bool has_exact = any([](state s) { return s == state::exact; });
    const bool has_other = any([](state s) { return s == state::wanted || s == state::half; });
    if (has_exact && has_other)
      return !is_own(n, "Elementwise"); // its first steps may need the digits of the exact operand
    return !has_exact;                  // also without others: a lookup in a table of weights, say
  }

  /// Adds `n` with float16 operands; returns false, adding nothing, if its row does not take them.
  bool try_float16(node n) {
    for (size_t i : float_slots(n))
      n.inputs[i] = in_half(n.inputs[i]);
    std::vector<value> before;
    for (value_id v : n.outputs)
      before.push_back(v == no_value ? value{} : graph_.values[v]);
    bool accepted = true;
    try {
      infer_node(graph_, n);
    } catch (const error&) {
      accepted = false; // a row that wants equal types if only some of its operands change
    }
    std::vector<dtype> types;
    for (size_t i = 0; i < n.outputs.size(); ++i) {
      types.push_back(n.outputs[i] == no_value ? dtype::undefined : graph_.values[n.outputs[i]].type);
      if (n.outputs[i] != no_value)
        graph_.values[n.outputs[i]] = std::move(before[i]); // dims and symbols as they were
    }
    if (accepted)
      add_half_node(std::move(n), types);
    return accepted;
  }

  /// Adds a node whose outputs are of `types`; outputs of the model are converted back.
  void add_half_node(node n, const std::vector<dtype>& types) {
    if (is_own(n, "Projections") && !n.attrs.has("last_norm") &&
        std::ranges::all_of(n.outputs, [&](value_id v) { return entry(v).is_output && !entry(v).is_read; })) {
      n.attrs.set("wide", int64_t{1});
      graph_.nodes.push_back(std::move(n));
      return;
    }
    std::vector<std::pair<value_id, value_id>> back;
    for (size_t i = 0; i < n.outputs.size(); ++i) {
      const value_id v = n.outputs[i];
      if (v == no_value || state_of(v) == state::not_float)
        continue;
      state_of(v) = types[i] == dtype::float16 ? state::half : state::wanted;
      if (state_of(v) == state::wanted)
        continue;
      if (!entry(v).is_output) {
        graph_.values[v].type = dtype::float16;
        entry(v).half = v;
        continue;
      }
      n.outputs[i] = twin(v, dtype::float16, "/float16");
      entry(v).half = n.outputs[i];
      entry(v).full = v;
      back.emplace_back(n.outputs[i], v);
    }
    graph_.nodes.push_back(std::move(n));
    for (const auto& [from, to] : back)
      add_cast(from, to);
  }

  void stay_in_float32(node& n) {
    bool mixed = false; // a chain over exact values and others
    for (value_id& v : n.inputs) {
      const state s = v == no_value ? state::not_float : state_of(v);
      mixed |= is_own(n, "Elementwise") && (s == state::half || s == state::wanted);
      if (s == state::half)
        v = in_full(v);
    }
    if ((mixed && !needs_float32(n)) || has_body(n))
      for (value_id v : n.outputs)
        if (v != no_value && state_of(v) == state::exact)
          state_of(v) = state::wanted;
    graph_.nodes.push_back(std::move(n));
  }

  value_id twin(value_id v, dtype type, const char* suffix) {
    value copy{.name = graph_.values[v].name + suffix, .type = type, .dims = graph_.values[v].dims};
    return graph_.add_value(std::move(copy));
  }

  /// Returns a float32 value's elements in float16.
  value_id in_half(value_id v) {
    if (entry(v).half != no_value)
      return entry(v).half;
    const value_id half = twin(v, dtype::float16, "/float16");
    if (const weight_ptr w = graph_.values[v].constant)
      graph_.values[half].constant = derive_float16(w);
    else
      graph_.nodes.push_back(make_node(graph_.values[half].name, "troupe", "ToFloat16", {v}, {half}));
    return entry(v).half = half;
  }

  /// Returns a half value's elements in float32.
  value_id in_full(value_id v) {
    if (entry(v).full != no_value)
      return entry(v).full;
    const value_id full = twin(v, dtype::float32, "/float32");
    add_cast(v, full);
    return entry(v).full = full;
  }

  void add_cast(value_id from, value_id to) {
    attributes attrs;
    attrs.set("to", static_cast<int64_t>(dtype::float32));
    graph_.nodes.push_back(make_node(graph_.values[to].name + "/cast", "", "Cast", {from}, {to}, std::move(attrs)));
  }

  static weight_ptr derive_float16(const weight_ptr& w) {
    const op_def* row = find_op("troupe", "ToFloat16", newest_opset("troupe"));
    return make_step(*row, {}, {w}, dtype::float16, w->dims);
  }

  graph& graph_;
  std::vector<converted> values_;
};

} // namespace

void convert_to_float16(graph& g) {
  float16_conversion(g).run();
}

} // namespace troupe
