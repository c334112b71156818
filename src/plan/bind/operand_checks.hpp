// Whether the operands of nodes fit each other, if symbolic dims leave it open: MatMul of [m, k] and [l, n], Concat of
// [n, 4] and [m, 4] beside each other. Inference compares what it knows as numbers, so it is asked again with the
// numbers of a binding; kernels count on the answer. Nodes whose operands fit whatever the numbers are, nearly all of
// them, are found once for a plan.
//
// What an operator asks of its operands is asked again at each binding, even if other calls have taken its place at
// load (ops/expansion.hpp): these may ask less, a Mul broadcasts. So the graph keeps the calls as they were
// (`graph::asked`).
#pragma once

#include "plan/plan.hpp"

namespace troupe {

/// Returns the nodes, by segment and ascending, that must be asked at each binding: with primes for the symbols, no two
/// the same, or with ones, inference refuses them, or gives other dims than the program says. Of nodes that ask the
/// same there is one.
std::vector<std::vector<node_id>> find_open_operands(const plan& p);

/// Returns the same of `graph::asked`: in each segment the nodes of that graph whose symbols all have values from its
/// binding on.
std::vector<std::vector<node_id>> find_open_calls(const plan& p);

/// Throws `errc::invalid_input`, naming node and inputs, if operands of the segment's open calls and operands do not
/// fit each other, or their results what the program says of these; `values` are the symbols' values.
void check_operands(const plan& p, uint32_t segment, const bindings& values);

/// Infers a node with numbers for its operands' dims and known elements; returns its outputs, an empty value if one is
/// absent. Throws what its operator says against them.
std::vector<value> infer_numbers(const graph& program, const node& n, const bindings& values);

} // namespace troupe
