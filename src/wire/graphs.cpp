#include "wire/graphs.hpp"

#include "base/limits.hpp"

namespace troupe::wire {

flat_graph flatten(const graph& g, const content_hashes& content_of) {
  flat_graph flat{.name = g.name, .inputs = g.inputs, .outputs = g.outputs};
  dim_flattener dims;
  weight_flattener weights(content_of);
  for (const value& v : g.values) {
    flat_value& made = flat.values.emplace_back(flat_value{v.name, v.type, v.layout});
    if (v.dims)
      made.dims = dims.add(*v.dims);
    if (v.known)
      made.known = dims.add(*v.known);
    if (v.constant)
      made.constant = weights.add(v.constant);
  }
  for (const node& n : g.nodes)
    flat.nodes.push_back({n.name, flat_of(*n.def), n.attrs, n.inputs, n.outputs, static_cast<uint32_t>(n.captures)});
  flat.dims = std::move(dims.table);
  flat.weights = std::move(weights.table);
  return flat;
}

graph make_graph(flat_graph flat, size_t message_bytes, open_leaves& open) {
  const dim_maker dims(flat.dims);
  const std::vector<weight_ptr> weights = make_weights(std::move(flat.weights), message_bytes, open);
  graph g;
  g.name = std::move(flat.name);
  g.inputs = std::move(flat.inputs);
  g.outputs = std::move(flat.outputs);
  for (flat_value& v : flat.values) {
    value made{.name = std::move(v.name), .type = v.type, .layout = v.layout};
    if (v.dims)
      made.dims = dims.list(*v.dims);
    if (v.known)
      made.known = dims.list(*v.known);
    if (v.constant < -1 || v.constant >= static_cast<int32_t>(weights.size()))
      fail(errc::invalid_input, "a value from another host is weight {} of {}", v.constant, weights.size());
    if (v.constant >= 0)
      made.constant = weights[static_cast<size_t>(v.constant)];
    g.add_value(std::move(made));
  }
  for (flat_node& n : flat.nodes) {
    const op_def& def = find_row(n.op);
    node made{.name = std::move(n.name), .op_type = std::move(n.op.name), .domain = std::move(n.op.domain)};
    made.attrs = std::move(n.attrs);
    made.inputs = std::move(n.inputs);
    made.outputs = std::move(n.outputs);
    made.captures = n.captures;
    made.def = &def;
    g.add_node(std::move(made));
  }
  return g;
}

} // namespace troupe::wire
