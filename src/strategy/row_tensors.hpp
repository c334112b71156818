// Cutting tensors by rows, and joining them.
#pragma once

#include "tensor/tensor_maker.hpp"

namespace troupe {

/// Returns the rows [first, first + count) along `axis`. Along axis 0 they are the same bytes, which the result keeps
/// alive; else a copy. Throws `errc::invalid_input` if the tensor has no such rows, `errc::unsupported` where 4-bit
/// elements would begin within a byte.
tensor rows_of(const tensor& t, size_t axis, int64_t first, int64_t count);

/// Returns all parts one after the other along `axis`; a single part as it is. Throws `errc::invalid_input` if there is
/// none, or types or other dims differ, `errc::unsupported` for 4-bit elements.
tensor join_rows(std::span<const tensor> parts, size_t axis, const tensor_maker& make = make_plain_tensor);

/// Copies `count` rows of `from`, beginning with `first`, over those of `into` from `at` on. Throws
/// `errc::invalid_input` if there are no such rows, or types or other dims differ, `errc::unsupported` for 4-bit
/// elements.
void put_rows(tensor& into, size_t axis, int64_t at, const tensor& from, int64_t first, int64_t count);

} // namespace troupe
