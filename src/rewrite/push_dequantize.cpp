// Dequantises later and quantises earlier: operators that only move elements, and MaxPool, do so with bytes as well;
// what is quantised after a Concat is quantised before it; QuantizeLinear after DequantizeLinear with the same scale
// and zero point is nothing. So both reach the products (fuse_quantized.cpp), and less is moved.
#include "ops/window.hpp"
#include "rewrite/match.hpp"
#include "rewrite/passes.hpp"
#include "rewrite/quantized_values.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// Returns whether node `n` gives elements of its first operand in some order, or their maxima.
bool moves_elements(const graph_editor& e, const node& n) {
  constexpr auto movers =
      std::to_array<std::string_view>({"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Slice", "Gather",
                                       "DepthToSpace", "SpaceToDepth", "MaxPool", "Expand", "Tile"});
  const bool named = n.domain.empty() && std::find(movers.begin(), movers.end(), n.op_type) != movers.end();
  return named && n.outputs.size() == 1 && n.outputs[0] != no_value && e.val(n.outputs[0]).dims.has_value();
}

/// Returns whether every window of MaxPool `n` has an element of its input: the maximum of none is −∞ among floats, the
/// lowest code among bytes.
bool finds_elements(const node& n) {
  const window_spec w = parse_window(n.attrs, n.attrs.integers("kernel_shape"));
  for (size_t i = 0; i < w.rank(); ++i) {
    const int64_t pad = w.mode == auto_pad::notset ? std::max(w.pads[i], w.pads[i + w.rank()]) : 0;
    const bool padded = pad > 0 || w.mode == auto_pad::same_upper || w.mode == auto_pad::same_lower;
    if (pad >= w.kernel[i] || (padded && w.dilations[i] > 1)) // dilated taps may step over a short input
      return false;
  }
  return true;
}

/// Returns whether maxima of dequantised elements are dequantised maxima.
bool keeps_order(const graph_editor& e, const node& n, value_id scale) {
  if (n.op_type != "MaxPool")
    return true;
  if (!finds_elements(n))
    return false;
  const auto number = scalar_constant(e, scale);
  return number && *number > 0;
}

/// Moves the DequantizeLinear that is before node `n` to after it.
bool push_after(graph_editor& e, node_id n) {
  if (e.at(n).inputs.empty() || !moves_elements(e, e.at(n)))
    return false;
  const value_id real = e.at(n).inputs[0], y = e.at(n).outputs[0];
  const auto x = dequantised_tensor(e, real);
  if (!x || !e.used_once(real) || !keeps_order(e, e.at(n), x->scale))
    return false;
  const dtype type = e.val(x->elements).type;
  if (!(e.at(n).def->types & set_of(type)))
    return false;
  node dequantize = e.at(e.producer(real)), moved = e.at(n);
  const value_id bytes = e.add_result(e.val(y).name + "/quantised");
  moved.inputs[0] = x->elements;
  moved.outputs = {bytes};
  dequantize.inputs[0] = bytes;
  dequantize.outputs = {y};
  e.add_node(std::move(moved)); // first, so that its operand always has a reader
  return e.replace(n, std::move(dequantize));
}

/// Returns whether Concat `n` is one of float32 values of known dims, several in all.
bool joins_floats(const graph_editor& e, const node& n) {
  return is_op(n, "Concat") && n.inputs.size() > 1 && std::all_of(n.inputs.begin(), n.inputs.end(), [&](value_id v) {
           return v != no_value && e.val(v).type == dtype::float32 && e.val(v).dims && !e.val(v).constant;
         });
}

/// QuantizeLinear `n` of a Concat: its operands are quantised instead.
bool pull_before(graph_editor& e, node_id n) {
  const auto q = quantisation_of(e, n);
  const value_id real = q ? e.at(n).inputs[0] : no_value;
  const node_id join = q && e.used_once(real) ? e.producer(real) : -1;
  if (join < 0 || !joins_floats(e, e.at(join)))
    return false;
  const node quantize = e.at(n);
  node joined = e.at(join);
  for (value_id& v : joined.inputs) {
    node own = quantize;
    own.name += "/" + e.val(v).name;
    own.inputs[0] = v;
    own.outputs = {e.add_result(e.val(v).name + "/" + quantize.name)};
    v = own.outputs[0];
    e.add_node(std::move(own));
  }
  joined.outputs = {q->elements};
  return e.replace(n, std::move(joined));
}

/// QuantizeLinear `n` of what was dequantised alike gives it back.
bool drop_round_trip(graph_editor& e, node_id n) {
  if (!is_op(e.at(n), "QuantizeLinear"))
    return false;
  const auto x = dequantised_tensor(e, e.at(n).inputs[0]);
  if (!x)
    return false;
  const auto q = quantisation_of(e, n);
  const auto scale = q ? scalar_constant(e, q->scale) : std::nullopt;
  if (!scale || !(*scale > 0) || !same_quantisation(e, *x, *q))
    return false;
  return e.bypass(n, x->elements);
}

} // namespace

bool push_dequantize(graph_editor& e) {
  return each_present_node(e,
                           [&](node_id n) { return push_after(e, n) || drop_round_trip(e, n) || pull_before(e, n); });
}

} // namespace troupe
