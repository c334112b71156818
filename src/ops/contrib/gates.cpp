// Gates of com.microsoft, as ONNX Runtime defines them: EngramGate, GatedAdd, GatedRMSNorm, LinearAttentionGate.
//
//   EngramGate: value · sigmoid(sign(d) · √max(|d|, 10⁻⁶)), where d is the product of the normed key and the normed
//     query over √size; keys and queries are [batch, sequence, branches, size], the value, the same for all branches,
//     [batch, sequence, size], scales of norms [branches, size]
//   GatedAdd: x + y · gate, one gate a row
//   GatedRMSNorm: RMSNormalization(x, scale) · silu(gate), or · sigmoid(gate); parts of the last axis as long as
//     `scale` are normed by themselves
//   LinearAttentionGate: decay = decay_scale · softplus(a + dt_bias), of one number each a head, in float32; beta =
//     sigmoid(b)
#include "ops/expansion.hpp"
#include "ops/infer.hpp"
#include "ops/operand.hpp"

namespace troupe {
namespace {

void expand_engram_gate(expansion& e) {
  const value_id key = e.input(0), value = e.input(2);
  const symbolic_shape dims = e.dims(key, 4);
  require_same_dims(e.dims(e.input(1)), dims, "query and key");
  require_same_dims(e.dims(value), symbolic_shape{dims[0], dims[1], dims[3]}, "value and [batch, sequence, size]");
  for (const size_t i : {size_t{1}, size_t{2}, size_t{3}, size_t{4}})
    if (e.type(e.input(i)) != e.type(key))
      fail(errc::invalid_model, "input {} is {}, the key {}", i, to_string(e.type(e.input(i))), to_string(e.type(key)));
  const dtype computed = e.type(key) == dtype::float64 ? dtype::float64 : dtype::float32;
  const auto normed = [&](size_t x, size_t scale) {
    require_same_dims(e.dims(e.input(scale)), symbolic_shape{dims[2], dims[3]}, "scale and [branches, size]");
    return e.add("RMSNormalization", {e.cast(e.input(x), computed), e.cast(e.input(scale), computed)},
                 attributes_of({{"axis", int64_t{-1}}, {"epsilon", e.attrs().real("epsilon", 1e-5f)}}));
  };
  const value_id products = e.add("Mul", {normed(0, 3), normed(1, 4)}),
                 sums = e.add("ReduceSum", {products, e.known({3})}),
                 root = e.add("Sqrt", {e.cast(e.known_scalar(dims[3]), computed)}), d = e.add("Div", {sums, root}),
                 size = e.add("Sqrt", {e.add("Max", {e.add("Abs", {d}), e.scalar(computed, 1e-6)})}),
                 gate = e.add("Sigmoid", {e.add("Mul", {e.add("Sign", {d}), size})});
  const value_id shared = e.reshape(e.cast(value, computed), {dims[0], dims[1], 1, dims[3]});
  e.set_output(0, e.cast(e.add("Mul", {gate, shared}), e.type(key)));
}

void expand_gated_add(expansion& e) {
  const symbolic_shape x = e.dims(e.input(0));
  require_rank(x.size(), 1, "x");
  require_same_dims(e.dims(e.input(1)), x, "y and x");
  symbolic_shape gate = x;
  gate.back() = 1;
  require_same_dims(e.dims(e.input(2)), gate, "the gate and what it must be");
  e.set_output(0, e.add("Add", {e.input(0), e.add("Mul", {e.input(1), e.input(2)})}));
}

void expand_gated_norm(expansion& e) {
  const std::string activation = word_of(e.attrs(), "activation", "silu", {"silu", "sigmoid"});
  const symbolic_shape x = e.dims(e.input(0)), scale = e.dims(e.input(1));
  require_rank(x.size(), 1, "x");
  require_same_dims(e.dims(e.input(2)), x, "the gate and x");
  const dim size = volume(std::span<const dim>(scale));
  if (!size.is_constant())
    fail(errc::unsupported, "the length of scale must be known, not {}", size.to_string());
  if (size.constant() < 1 || (x.back().is_constant() && x.back().constant() % size.constant() != 0))
    fail(errc::invalid_model, "rows of {} do not divide into parts of {}, the length of scale", x.back().to_string(),
         size.constant());
  symbolic_shape parts = x;
  parts.back() = floor_div(x.back(), size);
  parts.push_back(size);
  const float epsilon = e.attrs().real("epsilon", 1e-5f);
  const value_id normed = e.add("RMSNormalization", {e.reshape(e.input(0), parts), e.reshape(e.input(1), {size})},
                                attributes_of({{"axis", int64_t{-1}}, {"epsilon", epsilon}}));
  const value_id gate = e.add(activation == "silu" ? "Swish" : "Sigmoid", {e.input(2)});
  e.set_output(0, e.add("Mul", {e.reshape(normed, x), gate}));
}

void expand_linear_gate(expansion& e) {
  const symbolic_shape a = e.dims(e.input(0));
  require_rank(a.size(), 1, "a");
  const auto by_head = [&](size_t input, const char* what) {
    require_same(volume(std::span<const dim>(e.dims(e.input(input)))), a.back(), what);
    return e.cast(e.reshape(e.input(input), {a.back()}), dtype::float32);
  };
  const value_id bias = by_head(1, "elements of dt_bias and heads"),
                 scale = by_head(2, "elements of decay_scale and heads");
  const value_id rate = e.add("Softplus", {e.add("Add", {e.cast(e.input(0), dtype::float32), bias})});
  e.set_output(0, e.cast(e.add("Mul", {scale, rate}), e.type(e.input(0))));
  if (!e.has_output(1))
    return;
  if (!e.has_input(3))
    fail(errc::invalid_model, "output 1 needs input 3");
  require_same_dims(e.dims(e.input(3)), a, "b and a");
  e.set_output(1, e.add("Sigmoid", {e.input(3)}));
}

constexpr auto contrib_gate_rows = std::to_array<op_def>({
    composition_row("EngramGate", 1, expand_engram_gate,
                    {.domain = microsoft, .inputs = {5, 5}, .types = types::floats}),
    composition_row("GatedAdd", 1, expand_gated_add, {.domain = microsoft, .inputs = {3, 3}, .types = types::floats}),
    composition_row("GatedRMSNorm", 1, expand_gated_norm,
                    {.domain = microsoft, .inputs = {3, 3}, .types = types::floats}),
    composition_row("LinearAttentionGate", 1, expand_linear_gate,
                    {.domain = microsoft, .inputs = {3, 4}, .max_outputs = 2, .types = types::floats}),
});

} // namespace

extern constinit const op_table contrib_gates_ops = contrib_gate_rows;

} // namespace troupe
