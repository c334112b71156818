// Takes part of a call's operands instead of part of its result, where the call is mapped along the axis
// (ops/axes.hpp). So a model whose readers look at one position alone, as classifiers do at the first and decoders at
// the last, computes its last layer for that position alone:
//
// - Slice(f(x, y)) becomes f(Slice(x), Slice(y)), and Gather by constants likewise, if at most half of the axis is left
//   and f is read by nothing else. Operands that the axis does not run through stay whole.
// - Only where that reaches a call that computes, through calls that merely move or combine elements.
#include "rewrite/match.hpp"
#include "rewrite/passes.hpp"

#include "ops/axes.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// How far calls are looked at for one that computes.
constexpr int longest_way = 8;

/// What is taken of a value: part of the dim `axis`.
struct taken_part {
  size_t axis = 0;
  dim length;                // of the part
  std::vector<dim> bounds;   // of a Slice: start and end
  value_id index = no_value; // of a Gather
  bool drops_axis = false;   // the Gather's index is a scalar
};

/// The part that node `n` takes of its first input, if that is at most half of one axis.
std::optional<taken_part> part_of(const graph_editor& e, node_id n) {
  const node& call = e.at(n);
  const auto &from = e.val(call.inputs[0]).dims, &to = e.val(call.outputs[0]).dims;
  if (!from || !to)
    return std::nullopt;
  const infer_context c = infer_context::of(e.model(), call);
  taken_part part;
  if (is_op(call, "Gather") && e.val(call.inputs[1]).constant && e.val(call.inputs[1]).dims->size() < 2) {
    const symbolic_shape& indices = *e.val(call.inputs[1]).dims;
    part = {
        c.axis("axis", 0, from->size()), indices.empty() ? dim(1) : indices[0], {}, call.inputs[1], indices.empty()};
  } else if (is_op(call, "Slice") && call.inputs.size() > 2) {
    const auto starts = c.known(1), ends = c.known(2), axes = c.has_input(3) ? c.known(3) : std::nullopt;
    if (!starts || !ends || starts->size() != 1 || c.has_input(4) || (c.has_input(3) && !axes))
      return std::nullopt;
    part.axis = axes ? normalize_axis(axes->at(0).constant(), from->size()) : 0;
    part.length = (*to)[part.axis];
    part.bounds = {starts->front(), ends->front()};
  } else {
    return std::nullopt;
  }
  const dim& whole = (*from)[part.axis];
  const bool is_small = part.length.is_constant() && part.length.constant() > 0 &&
                        (!whole.is_constant() || part.length.constant() <= whole.constant() / 2);
  return is_small ? std::optional(part) : std::nullopt;
}

/// The axis that a call is mapped along at dim `axis` of its only result, each index one element there and in its
/// operands, which are as long there, so that none is repeated, and not constant.
std::optional<call_axis> mapped_axis(const graph_editor& e, node_id n, size_t axis) {
  const node& call = e.at(n);
  if (!call.def || !call.def->infer || call.captures > 0 || call.outputs.size() != 1)
    return std::nullopt;
  const infer_context context = infer_context::of(e.model(), call);
  const auto fits = [&](const call_axis& a) {
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      const auto& place = a.inputs[i];
      const value& operand = e.val(place ? call.inputs[i] : call.outputs[0]);
      if (place && (operand.constant || !place->unit.is(1) ||
                    !((*operand.dims)[place->axis] == (*e.val(call.outputs[0]).dims)[axis])))
        return false;
    }
    return a.kind == axis_kind::mapped && a.outputs[0] && a.outputs[0]->axis == axis && a.outputs[0]->unit.is(1);
  };
  try {
    const call_axes axes = axes_of(context);
    const auto found = std::ranges::find_if(axes.all(), fits);
    return found == axes.all().end() ? std::nullopt : std::optional(*found);
  } catch (const error&) {
    return std::nullopt;
  }
}

/// A node, and an axis of it.
struct node_along {
  node_id node;
  call_axis axis;
};

/// The node that makes `v` for `reader` alone, and its axis at dim `axis` of `v`.
std::optional<node_along> maker_along(const graph_editor& e, value_id v, node_id reader, size_t axis) {
  const node_id n = e.producer(v);
  if (n < 0 || e.only_consumer(v) != reader)
    return std::nullopt;
  auto found = mapped_axis(e, n, axis);
  return found ? std::optional(node_along{n, std::move(*found)}) : std::nullopt;
}

/// Whether a call does less work for part of an axis: itself, or one that makes an operand of it for it alone.
bool spares_work(const graph_editor& e, const node_along& call, int steps) {
  const node& n = e.at(call.node);
  if (n.def->cost)
    return true;
  for (size_t i = 0; steps > 0 && i < n.inputs.size(); ++i)
    if (const auto& place = call.axis.inputs[i]) {
      const auto maker = maker_along(e, n.inputs[i], call.node, place->axis);
      if (maker && spares_work(e, *maker, steps - 1))
        return true;
    }
  return false;
}

/// Takes the part of an operand along its dim `axis`.
value_id take(graph_editor& e, value_id v, const taken_part& part, size_t axis) {
  const std::string name = e.val(v).name + "/part";
  attributes attrs;
  if (part.bounds.empty()) {
    value_id index = part.index;
    if (part.drops_axis) // the axis stays until the end
      index = e.add_constant(name + "/index", derive_reshape(e.val(index).constant, {1}));
    attrs.set("axis", static_cast<int64_t>(axis));
    return add_inferred(e, make_node(name, "", "Gather", {v, index}, {}, attrs), e.val(v).name);
  }
  const value_id starts = e.add_known(name + "/start", {part.bounds[0]}),
                 ends = e.add_known(name + "/end", {part.bounds[1]}),
                 axes = e.add_known(name + "/axis", {static_cast<int64_t>(axis)});
  return add_inferred(e, make_node(name, "", "Slice", {v, starts, ends, axes}, {}), e.val(v).name);
}

/// Operand `i` of a call says in element `element` how long the result is: as long as the part now, unless the element
/// says "as the operand" or "what is left".
value_id resized(graph_editor& e, const node& call, size_t i, size_t element, const dim& length) {
  std::vector<dim> elements = infer_context::of(e.model(), call).require_known(i);
  if (elements[element].is(0) || elements[element].is(-1))
    return call.inputs[i];
  elements[element] = length;
  return e.add_known(e.val(call.inputs[i]).name + "/part", elements);
}

bool hoist(graph_editor& e, node_id n) {
  const auto part = part_of(e, n);
  const auto maker = part ? maker_along(e, e.at(n).inputs[0], n, part->axis) : std::nullopt;
  if (!maker || !spares_work(e, *maker, longest_way - 1))
    return false;
  const call_axis& along = maker->axis;
  node call = e.at(maker->node);
  for (size_t i = 0; i < call.inputs.size(); ++i)
    if (along.inputs[i])
      call.inputs[i] = take(e, call.inputs[i], *part, along.inputs[i]->axis);
  for (const auto& [i, element] : along.sizes)
    call.inputs[i] = resized(e, e.at(maker->node), i, element, part->length);
  const value_id out = e.at(n).outputs[0];
  const std::string name = e.at(n).name + "/view";
  const value_id kept = add_inferred(e, std::move(call), e.val(out).name);
  return e.replace(n, make_reshape(e, name, kept, *e.val(out).dims, out));
}

} // namespace

bool hoist_slices(graph_editor& e) {
  return each_node(e, [&](node_id n) { return (is_op(e.at(n), "Slice") || is_op(e.at(n), "Gather")) && hoist(e, n); });
}

} // namespace troupe
