// Whether the rows of a batch are independent: whether each row of every output depends on its own row of the inputs
// alone. Only then may a batch be cut, or requests be joined, without changing a result.
//
// The proof goes node by node. A value is shared by all rows, has its rows along one axis, or is a size, which follows
// from the number of rows (a Shape). The axes of a call (ops/axes.hpp) say where the rows of its operands are in its
// results; a call whose rows are on no axis is refused.
#pragma once

#include "graph/graph.hpp"

namespace troupe {

/// Where the rows of a batch are in a model's inputs and outputs.
struct batch_rows {
  std::string symbol;                         // the dim that counts rows
  std::vector<std::optional<size_t>> inputs;  // by graph input: the axis of the rows; nullopt: all rows share it
  std::vector<std::optional<size_t>> outputs; // by graph output, the same
};

/// Returns where the rows are in a program that is inferred and topologically sorted, as the rewrite leaves it. They
/// are counted by the symbol that is the first dim of an input, else by the first one that any dim of an input is.
/// Throws `errc::unsupported` naming the node that mixes rows and why, or the input or output whose rows cannot be told
/// apart.
batch_rows prove_rows(const graph& program);

} // namespace troupe
