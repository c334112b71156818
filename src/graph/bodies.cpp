#include "graph/bodies.hpp"

#include <algorithm>

namespace troupe {

bool has_body(const node& n) {
  const auto is_body = [](const auto& a) { return std::holds_alternative<graph_ptr>(a.second); };
  return std::any_of(n.attrs.all().begin(), n.attrs.all().end(), is_body);
}

std::vector<node_body> bodies_of(const node& n) {
  std::vector<node_body> bodies;
  size_t captures = 0;
  for (const auto& [name, a] : n.attrs.all()) {
    const auto* body = std::get_if<graph_ptr>(&a);
    if (!body)
      continue;
    if (!*body || (*body)->captured.size() > (*body)->inputs.size())
      fail(errc::invalid_model, "{}: its body '{}' is not a graph", describe(n), name);
    bodies.push_back({name, *body, n.formal_inputs() + captures});
    captures += (*body)->captured.size();
  }
  if (captures != n.captures || n.captures > n.inputs.size())
    fail(errc::invalid_model, "{}: it lists {} captured values, its bodies have {}", describe(n), n.captures, captures);
  return bodies;
}

size_t count_bodies(const graph& g) {
  size_t count = 0;
  for (const node& n : g.nodes)
    if (has_body(n))
      for (const node_body& body : bodies_of(n))
        count += 1 + count_bodies(*body.program);
  return count;
}

size_t count_nodes(const graph& g) {
  size_t count = g.nodes.size();
  for (const node& n : g.nodes)
    if (has_body(n))
      for (const node_body& body : bodies_of(n))
        count += count_nodes(*body.program);
  return count;
}

} // namespace troupe
