// Constant right operands of quantised products, packed for int8_product.hpp as recipes, so that all plans share them.
#pragma once

#include "graph/weight.hpp"

namespace troupe::int8 {

/// Returns bytes `w`, seen as `groups` matrices of `depth` rows and `columns` columns, packed; uint8 ones with their
/// highest bit flipped.
weight_ptr pack_weight(const weight_ptr& w, int64_t groups, int64_t depth, int64_t columns);

/// Returns the weights of a convolution [filters, channels, taps…] as `groups` such matrices, whose rows are channels
/// within taps.
weight_ptr pack_filters(const weight_ptr& w, int64_t groups);

} // namespace troupe::int8
