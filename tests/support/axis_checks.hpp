// What a call says of its axes against what its reference kernel computes.
#pragma once

#include "ops/op.hpp"

namespace troupe::test {

/// How many axes were checked, by kind.
struct axis_counts {
  int mapped = 0, reduced = 0, windowed = 0;
};

/// Runs a call whole and in parts: permuted and cut along each mapped axis, split along reduced ones and combined, cut
/// along windowed ones with what the windows need. Returns what is wrong, or an empty text. Axes of one index are not
/// checked, nor elements that share bytes.
std::string check_axes(const op_def& def, const attributes& attrs, const std::vector<tensor>& inputs, size_t outputs,
                       axis_counts& counts);

/// Does the same with every call of a resolved graph, on what it computes for these inputs. A graph with control flow
/// or random numbers, or one that these inputs do not fit, is not run.
std::string check_axes(const graph& g, const std::vector<tensor>& inputs, axis_counts& counts);

} // namespace troupe::test
