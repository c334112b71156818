// A sum of bytes with what a product or convolution of bytes gives becomes the end of that one: troupe.QuantizedMatMul
// and QuantizedConv quantise their own result, dequantise it, add the other operand, a residual, and quantise again, as
// the nodes do that they stand for.
#include "ops/composed/fused_elementwise.hpp"
#include "rewrite/match.hpp"
#include "rewrite/passes.hpp"
#include "rewrite/quantized_values.hpp"

#include <limits>

namespace troupe {
namespace {

/// Inputs of a product: what its result is quantised with, then the sum's.
constexpr size_t own_scale = 7, own_zero = 8, residual = 9;
/// Inputs of a chain of two operands, three for each: what its result is quantised with.
constexpr size_t sum_scale = 6, sum_zero = 7;

/// What a sum is limited to before it is quantised.
struct sum_range {
  float low = -std::numeric_limits<float>::infinity(), high = std::numeric_limits<float>::infinity();
};

/// Returns the limits of the sum that chain `n` is of its two operands; nullopt if it is something else.
std::optional<sum_range> sum_of(const node& n) {
  const elementwise_program program = parse_elementwise(n.attrs, 2);
  const std::vector<elementwise_step>& steps = program.steps;
  const bool adds = !steps.empty() && steps.size() <= 2 && steps[0].code == scalar_code::add &&
                    steps[0].a != steps[0].b && steps[0].a >= 0 && steps[0].b >= 0;
  if (!adds)
    return std::nullopt;
  if (steps.size() == 1)
    return sum_range{};
  const elementwise_step& end = steps[1];
  if (end.code == scalar_code::relu && end.a == 2)
    return sum_range{.low = 0};
  if (end.code != scalar_code::clip || end.a != 2 || end.b >= 0 || end.c >= 0)
    return std::nullopt;
  const auto number = [&](int32_t constant) { return program.constants.at(static_cast<size_t>(-1 - constant)); };
  return sum_range{number(end.b), number(end.c)};
}

/// Returns whether convolution `n` has one input channel a group: then its kernels end in no sum.
bool is_depthwise(const graph_editor& e, const node& n) {
  const auto& filters = e.val(n.inputs[1]).dims;
  return n.op_type == "QuantizedConv" && (!filters || (*filters)[1].is(1));
}

/// Returns the product that gives the bytes `v`, which no other node reads, and can add something to them; −1 if there
/// is none.
node_id open_product(const graph_editor& e, value_id v) {
  const node_id n = e.used_once(v) ? e.producer(v) : -1;
  if (n < 0 || !is_quantized_product(e.at(n)))
    return -1;
  const bool open = input_of(e.at(n), own_scale) != no_value && input_of(e.at(n), residual) == no_value;
  return open && !is_depthwise(e, e.at(n)) ? n : -1;
}

/// Puts the product that gives operand `own` of the chain `index`, 0 or 1, in the place of the chain.
bool end_in_sum(graph_editor& e, node_id index, size_t own, const sum_range& range) {
  const node& chain = e.at(index);
  const size_t mine = 3 * own, other = 3 - mine;
  const value_id y = chain.inputs[mine];
  const node_id at = open_product(e, y);
  if (at < 0 || !same_dims(e, y, chain.outputs[0]) || !same_dims(e, chain.inputs[other], chain.outputs[0]))
    return false;
  node fused = e.at(at);
  const quantised_tensor made{y, fused.inputs[own_scale], input_of(fused, own_zero)},
      read{y, chain.inputs[mine + 1], chain.inputs[mine + 2]};
  if (!same_quantisation(e, made, read))
    return false;
  fused.name += "+sum";
  fused.inputs.resize(residual, no_value);
  fused.inputs.insert(fused.inputs.end(), {chain.inputs[other], chain.inputs[other + 1], chain.inputs[other + 2],
                                           chain.inputs[sum_scale], input_of(chain, sum_zero)});
  fused.attrs.set("sum_low", range.low);
  fused.attrs.set("sum_high", range.high);
  fused.outputs = chain.outputs;
  return e.replace(index, std::move(fused));
}

bool fuse_sum(graph_editor& e, node_id index) {
  const node& n = e.at(index);
  if (!is_own(n, "QuantizedElementwise") || n.attrs.integer("operands") != 2)
    return false;
  for (const size_t scale : {size_t{1}, size_t{4}, sum_scale}) // bytes only
    if (input_of(n, scale) == no_value)
      return false;
  const auto range = sum_of(n);
  return range && (end_in_sum(e, index, 0, *range) || end_in_sum(e, index, 1, *range));
}

} // namespace

bool fuse_quantized_sum(graph_editor& e) {
  return each_node(e, [&](node_id n) { return fuse_sum(e, n); });
}

} // namespace troupe
