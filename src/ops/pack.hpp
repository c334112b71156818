// troupe.Pack: a weight's elements in the order in which a kernel reads them, on GPUs and CPUs alike: a step of its
// recipe.
//
// The operand is seen with `dims`. Axis i of the result walks axis `order[i]` of those, and there are `sizes[i]` of it.
// An axis that `order` names several times is split: the last of its parts counts elements, each before that counts
// blocks of all parts after it. What is beyond the operand's end is zero. So order 0 2 1 transposes matrices, and
// oneDNN's OIhw8i8o is order 0 1 2 3 1 0 with sizes O/8 I/8 H W 8 8.
//
// Devices decide how weights are packed, files do not: this operator is not in the registry, nor is troupe.SumRows.
#pragma once

#include "graph/weight.hpp"

namespace troupe {

/// Returns `w` packed; nothing is computed yet. Without `sizes` axes are only permuted. Computing it throws
/// `errc::internal` if `dims` or `sizes` do not fit the weight.
weight_ptr pack(const weight_ptr& w, shape dims, shape order, shape sizes = {});

/// Returns a vector `count` times, one after the other. Nothing is computed yet.
weight_ptr repeat(const weight_ptr& w, int64_t count);

/// Returns the sums of the last axis of an int8 weight as int32, one for each of its rows: what products by them have
/// to correct if the other operand has a zero point. Nothing is computed yet.
weight_ptr sum_rows(const weight_ptr& w);

} // namespace troupe
