// The bodies of control-flow nodes (If, Loop, Scan): graphs held by attributes.
//
// A body is a graph of its own. Its inputs are the formal ones, then those for the captured values of the enclosing
// graph (`graph::captured`); the node lists the captured values after its formal inputs, body by body.
#pragma once

#include "graph/graph.hpp"

namespace troupe {

using graph_ptr = std::shared_ptr<const graph>;

/// One body of a node.
struct node_body {
  std::string name; // of the attribute: "body", "then_branch", "else_branch"
  graph_ptr program;
  /// Position in `node::inputs` of the value that is the body's first captured input.
  size_t first_capture = 0;

  /// How many of the body's inputs are formal.
  size_t formal_inputs() const { return program->inputs.size() - program->captured.size(); }
};

/// Returns whether a node has bodies, that is, whether it is control flow.
bool has_body(const node& n);

/// Returns the bodies of a node in the order of their captures, that of the attributes' names. Throws
/// `errc::invalid_model` if the node does not list as many captures as its bodies have.
std::vector<node_body> bodies_of(const node& n);

/// Returns the bodies of a graph's nodes, those in bodies included.
size_t count_bodies(const graph& g);

/// Returns the nodes of a graph, those of bodies included.
size_t count_nodes(const graph& g);

} // namespace troupe
