// Elements of tensors, whatever their type, as one type.
#pragma once

#include "tensor/dtype.hpp"
#include "tensor/shape.hpp"

namespace troupe {

/// Returns the elements of an integer or boolean tensor as int64; throws `errc::invalid_model` for other types.
std::vector<int64_t> to_int64(const const_view& values);

/// Returns the elements of a numeric tensor as double; throws `errc::unsupported` for other types.
std::vector<double> to_double(const const_view& values);

} // namespace troupe
