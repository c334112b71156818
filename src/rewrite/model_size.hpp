// How large a model is: what a rewrite may take grows with it (base/limits.hpp).
#pragma once

#include "graph/graph.hpp"

namespace troupe {

/// A model's size, bodies included.
struct model_size {
  int64_t nodes = 0;
  /// Of its constants, those that share bytes counted once, and of the nodes, roughly as a file has them.
  int64_t bytes = 0;
};

/// Returns the size of a model that is not rewritten yet.
model_size size_of(const graph& g);

} // namespace troupe
