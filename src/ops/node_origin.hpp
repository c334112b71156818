// How errors name a node: a fused one by what the caller's file calls it, too.
#pragma once

#include "base/printable.hpp"
#include "graph/graph.hpp"

namespace troupe {

/// Returns `describe(n)`, and of a node that fusion made which node of the file its first part is. Fusion adds to that
/// one's name.
inline std::string describe_origin(const node& n) {
  if (n.domain != "troupe")
    return describe(n);
  const std::string first = n.name.substr(0, n.name.find('+'));
  return describe(n) + printable(" (the model's '" + first + "', and what is fused with it)");
}

} // namespace troupe
