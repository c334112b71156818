// Activations that exporters write as several nodes become one: GELU (with erf and with tanh), SiLU and HardSwish.
#include "rewrite/match.hpp"
#include "rewrite/passes.hpp"

#include <cmath>
#include <numbers>

namespace troupe {
namespace {

/// Returns x if `v` = x · scale (as Mul, or Div by 1 / scale).
value_id unscaled(const graph_editor& e, value_id v, double scale) {
  const auto found = scaled_by_constant(e, v);
  return found && is_near(found->scale, scale, e.val(v).type) ? found->source : no_value;
}

/// Given `gate` = f(x), returns the node that ends x · scale · gate, in any order of the three factors; -1 if there is
/// none.
node_id end_of_product(const graph_editor& e, value_id gate, value_id x, double scale) {
  const node_id next = e.used_once(gate) ? e.only_consumer(gate) : -1;
  if (next < 0 || e.at(next).outputs.empty())
    return -1;
  const value_id out = e.at(next).outputs[0];
  if (unscaled(e, out, scale) == gate) {
    const node_id last = consumed_by(e, out, "Mul");
    const bool with_x = last >= 0 && (e.at(last).inputs[0] == x || e.at(last).inputs[1] == x);
    return with_x ? last : -1;
  }
  if (!is_op(e.at(next), "Mul"))
    return -1;
  const value_id other = e.at(next).inputs[0] == gate ? e.at(next).inputs[1] : e.at(next).inputs[0];
  if (unscaled(e, other, scale) == x)
    return next;
  const node_id last = other == x ? e.only_consumer(out) : -1;
  return last >= 0 && unscaled(e, e.at(last).outputs[0], scale) == out ? last : -1;
}

/// Returns 1 + v's consumer output, no_value if `v` goes elsewhere.
value_id plus_one(const graph_editor& e, value_id v) {
  const node_id sum = consumed_by(e, v, "Add");
  return other_operand(e, sum, "Add", 1) == v ? e.at(sum).outputs[0] : no_value;
}

bool is_cube(const graph_editor& e, value_id v, value_id x) {
  const node_id n = e.producer(v);
  if (n < 0)
    return false;
  const node& call = e.at(n);
  if (is_op(call, "Pow"))
    return call.inputs[0] == x && is_scalar(e, call.inputs[1], 3);
  if (!is_op(call, "Mul"))
    return false;
  for (size_t i : {0, 1}) {
    const node_id square = produced_by(e, call.inputs[i], "Mul");
    if (call.inputs[1 - i] == x && square >= 0 && e.at(square).inputs[0] == x && e.at(square).inputs[1] == x)
      return true;
  }
  return false;
}

/// Returns x if `v` = √(2/π) · (x + 0.044715 · x³).
value_id tanh_argument(const graph_editor& e, value_id v) {
  const value_id sum = unscaled(e, v, std::sqrt(2 / std::numbers::pi));
  const node_id add = produced_by(e, sum, "Add");
  if (add < 0)
    return no_value;
  for (size_t i : {0, 1}) {
    const value_id x = e.at(add).inputs[i], cube = unscaled(e, e.at(add).inputs[1 - i], 0.044715);
    if (cube != no_value && is_cube(e, cube, x))
      return x;
  }
  return no_value;
}

bool fuse_gelu(graph_editor& e, node_id n, bool exact) {
  const node& f = e.at(n);
  const value_id x = exact ? unscaled(e, f.inputs[0], std::numbers::sqrt2 / 2) : tanh_argument(e, f.inputs[0]);
  const value_id gate = x == no_value ? no_value : plus_one(e, f.outputs[0]);
  const node_id last = gate == no_value ? -1 : end_of_product(e, gate, x, 0.5);
  if (last < 0 || !same_dims(e, x, e.at(last).outputs[0]))
    return false;
  attributes attrs;
  attrs.set("approximate", std::string(exact ? "none" : "tanh"));
  return e.replace(last, make_node(f.name + "+gelu", "", "Gelu", {x}, {e.at(last).outputs[0]}, std::move(attrs)));
}

bool fuse_silu(graph_editor& e, node_id n) {
  const value_id x = e.at(n).inputs[0], gate = e.at(n).outputs[0];
  const node_id product = consumed_by(e, gate, "Mul");
  if (product < 0 || !e.used_once(gate))
    return false;
  const node& p = e.at(product);
  if (p.inputs[0] != x && p.inputs[1] != x)
    return false;
  return e.replace(product, make_node(e.at(n).name + "+silu", "", "Swish", {x}, {p.outputs[0]}));
}

/// x · clip(x + 3, 0, 6) / 6
bool fuse_hard_swish(graph_editor& e, node_id n) {
  const auto clip = scalar_call_of(e, e.at(n));
  const node_id sum = e.producer(e.at(n).inputs[0]);
  if (!clip || clip->code != scalar_code::clip || clip->numbers != std::vector<float>{0, 6} || sum < 0)
    return false;
  const value_id x = other_operand(e, sum, "Add", 3);
  const node_id last = x == no_value ? -1 : end_of_product(e, e.at(n).outputs[0], x, 1.0 / 6);
  if (last < 0 || !same_dims(e, x, e.at(last).outputs[0]))
    return false;
  return e.replace(last, make_node(e.at(n).name + "+hardswish", "", "HardSwish", {x}, {e.at(last).outputs[0]}));
}

} // namespace

bool fuse_activations(graph_editor& e) {
  const bool gelu = has_row("Gelu"), swish = has_row("Swish"), hard_swish = has_row("HardSwish");
  return each_node(e, [&](node_id n) {
    if (is_op(e.at(n), "Erf") || is_op(e.at(n), "Tanh"))
      return gelu && fuse_gelu(e, n, is_op(e.at(n), "Erf"));
    if (is_op(e.at(n), "Sigmoid"))
      return swish && fuse_silu(e, n);
    return hard_swish && is_op(e.at(n), "Clip") && fuse_hard_swish(e, n);
  });
}

} // namespace troupe
