// Content hashes of graphs and of single operators: what the keys of plans and of measured times are made of.
#pragma once

#include "graph/graph.hpp"

namespace troupe {

/// Hashes what a plan of `g` depends on: operators, attributes, bodies, types, dims, host-known elements, layouts,
/// weights by their keys, interface names, requested outputs, what compositions asked. Costs a pass over the graph:
/// keep the result beside it.
hash128 hash_of(const graph& g);

/// Hashes the same, except what the weights' elements are; for saved plans, which a change of them leaves valid. Nodes'
/// names count too.
hash128 structure_of(const graph& g);

/// Adds what a node does: domain, operator, row, number of captures, attributes; neither its name nor its operands.
void add_operator(hasher& h, const node& n);

/// Adds attributes, bodies included.
void add_attributes(hasher& h, const attributes& attrs);

} // namespace troupe
