#include "rewrite/control_flow.hpp"

#include "ops/composed/flex_attention.hpp"
#include "ops/onnx/control.hpp"
#include "ops/registry.hpp"

namespace troupe {

graph prepare_body(const graph& source) {
  graph body = source;
  resolve(body);
  sort_topologically(body);
  return body;
}

std::string take_name(rewrite_context& context, const std::string& name) {
  const auto [taken, fresh] = context.names.try_emplace(name, 0);
  if (fresh)
    return name;
  size_t& last = taken->second; // stays where it is when names are added
  for (;;)
    if (std::string unique = fmt::format("{}#{}", name, ++last); context.names.try_emplace(unique, 0).second)
      return unique;
}

namespace {

/// Returns a value of the batched body for operand `v` of the Scan around it, without the batch axis.
value_id add_batched(graph& body, const graph& outer, value_id v, size_t index) {
  value element{.name = fmt::format("batched_{}", index), .type = outer.values[v].type, .dims = outer.values[v].dims};
  if (element.dims && !element.dims->empty())
    element.dims->erase(element.dims->begin());
  const value_id added = body.add_value(std::move(element));
  body.inputs.push_back(added);
  return added;
}

} // namespace

node nest_old_scan(const graph& g, const node& n) {
  if (n.inputs[0] != no_value)
    fail(errc::unsupported, "sequences of different lengths in one batch (sequence_lens) are not supported");
  const size_t batched = n.formal_inputs() - 1;
  auto batch = std::make_shared<graph>();
  batch->name = n.name;
  batch->opsets = g.opsets;
  batch->opsets[""] = 9;
  node inner{.name = n.name + "/sequence", .op_type = "Scan", .attrs = n.attrs, .captures = n.captures};
  for (size_t i = 0; i < batched; ++i)
    inner.inputs.push_back(add_batched(*batch, g, n.inputs[i + 1], i));
  for (size_t i = n.formal_inputs(); i < n.inputs.size(); ++i) {
    const value_id v = batch->add_value(g.values[n.inputs[i]]);
    batch->values[v].name = fmt::format("captured_{}", i);
    batch->captured.push_back(v);
    inner.inputs.push_back(v);
  }
  batch->inputs.insert(batch->inputs.end(), batch->captured.begin(), batch->captured.end());
  for (size_t i = 0; i < n.outputs.size(); ++i) {
    inner.outputs.push_back(batch->add_value({.name = fmt::format("output_{}", i)}));
    batch->outputs.push_back(inner.outputs.back());
  }
  if (n.attrs.has("directions")) {
    inner.attrs.set("scan_input_directions", n.attrs.integers("directions"));
    inner.attrs.erase("directions");
  }
  batch->add_node(std::move(inner));
  node outer{.name = n.name, .op_type = "Scan", .outputs = n.outputs, .captures = n.captures};
  outer.inputs.assign(n.inputs.begin() + 1, n.inputs.end());
  outer.attrs.set("num_scan_inputs", static_cast<int64_t>(batched));
  outer.attrs.set("body", graph_ptr(std::move(batch)));
  outer.def = find_op("", "Scan", 9);
  return outer;
}

std::optional<std::vector<node>> rewrite_control_flow(graph& g, node& n, nodes_ahead& ahead, rewrite_context& context) {
  try {
    if (!is_control(n)) {
      if (n.op_type == "Scan" && n.domain.empty())
        return std::vector<node>{nest_old_scan(g, n)};
      if (n.op_type == "FlexAttention" && n.domain == preview)
        return take_apart_attention(g, n, context);
      fail(errc::unsupported, "it has a graph attribute, but it is not control flow that is known");
    }
    if (auto instead = unroll(g, n, context))
      return instead;
    if (n.op_type == "If")
      return rewrite_branches(g, n, ahead, context);
    if (n.op_type == "Loop")
      return rewrite_loop(g, n, context);
    rewrite_bodies(g, n, context);
    return std::nullopt;
  } catch (const error& e) {
    if (n.op_type == "If" && n.attrs.has(iterations_before))
      throw; // what is inside names the loop, as the file does
    fail(e.code(), "{}: {}", describe(n), e.what());
  }
}

} // namespace troupe
