// The program of a plan as flat tables: all that running it needs. Fields that only loading and rewriting look at are
// left out.
#pragma once

#include "wire/dims.hpp"
#include "wire/weights.hpp"

namespace troupe::wire {

template <>
inline constexpr uint64_t count_of<layout> = 2;

struct flat_value {
  std::string name;
  dtype type{};
  troupe::layout layout{};
  std::optional<uint32_t> dims, known; // lists of dims
  int32_t constant = -1;               // a weight
};

struct flat_node {
  std::string name;
  flat_operator op;
  attributes attrs;
  std::vector<value_id> inputs, outputs;
  uint32_t captures = 0;
};

struct flat_graph {
  std::string name;
  flat_dims dims;
  std::vector<flat_weight> weights;
  std::vector<flat_value> values;
  std::vector<flat_node> nodes;
  std::vector<value_id> inputs, outputs;
};

flat_graph flatten(const graph& g, const content_hashes& content_of);

/// Makes the graph again; ids may still be anything (check_program.hpp). Throws `errc::invalid_input`,
/// `errc::unsupported`.
graph make_graph(flat_graph flat, size_t message_bytes, open_leaves& open);

template <class Archive>
void visit(Archive& a, flat_value& v) {
  a(v.name, v.type, v.layout, v.dims, v.known, v.constant);
}

template <class Archive>
void visit(Archive& a, flat_node& n) {
  a(n.name, n.op, n.attrs, n.inputs, n.outputs, n.captures);
}

template <class Archive>
void visit(Archive& a, flat_graph& g) {
  a(g.name, g.dims, g.weights, g.values, g.nodes, g.inputs, g.outputs);
}

} // namespace troupe::wire
