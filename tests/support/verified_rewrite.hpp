// The rewrite, each of its steps checked. After a step
//
// - the types and dims of all values are those of a new inference, and nothing makes a constant;
// - every value that is there before and after has the same elements: a constant those that its maker computed, a
//   fused node those of the nodes that it replaced.
//
// Both graphs run node by node through the reference kernels. A graph with control flow or random numbers is only
// inferred anew.
//
// This is test code, not a build of its own: it runs the passes that every build runs, beside all other tests, for any
// graph.
#pragma once

#include "rewrite/rewrite.hpp"

namespace troupe::test {

/// Returns the rewritten graph; `inputs` are in the order of `g.inputs`. Throws `errc::internal` naming step and value
/// where a check fails. `tolerance` is relative to a value's largest element, or 1; integers have to be equal unless
/// the graph quantises: then one may be off by one.
graph verified_rewrite(const graph& g, const std::vector<tensor>& inputs, const rewrite_options& options = {},
                       double tolerance = 1e-4);

} // namespace troupe::test
