// FlexAttention whose scores or weights the model changes: its parts, with copies of the modifiers' nodes between them.
#include "ops/composed/flex_attention.hpp"
#include "rewrite/control_flow.hpp"

namespace troupe {
namespace {

/// Adds a modifier's nodes over `v`; returns its result, which has the dims and type of `v`.
value_id modify(graph& g, const node& n, const node_body& modifier, value_id v, rewrite_context& context,
                std::vector<node>& nodes) {
  if (modifier.formal_inputs() != 1 || modifier.program->outputs.size() != 1)
    fail(errc::invalid_model, "'{}' has {} inputs and {} outputs, but must have one of each", modifier.name,
         modifier.formal_inputs(), modifier.program->outputs.size());
  const value_id result = copy_body(g, n, modifier, {&v, 1}, n.name + "/" + modifier.name, context, nodes).front();
  if (!g.values[result].constant) { // what comes after it is inferred before it is
    g.values[result].type = g.values[v].type;
    g.values[result].dims = g.values[v].dims;
  }
  return result;
}

} // namespace

std::vector<node> take_apart_attention(graph& g, node& n, rewrite_context& context) {
  std::vector<node> nodes;
  const auto add_part = [&](const std::function<value_id(expansion&)>& make) {
    expansion part(g, n, [&](const std::string& name) { return take_name(context, name); });
    const value_id made = make(part);
    std::vector<node> steps = part.take();
    std::move(steps.begin(), steps.end(), std::back_inserter(nodes));
    return made;
  };
  const auto modified = [&](std::string_view by, value_id v) {
    for (const node_body& modifier : bodies_of(n))
      if (modifier.name == by)
        v = modify(g, n, modifier, v, context, nodes);
    return v;
  };
  const value_id scores = modified("score_mod", add_part(flex_scores));
  const value_id weights = modified("prob_mod", add_part([&](expansion& e) { return flex_weights(e, scores); }));
  add_part([&](expansion& e) {
    set_flex_result(e, weights);
    return weights;
  });
  return nodes;
}

} // namespace troupe
