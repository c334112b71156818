// What the operators that only move elements share: outputs whose host-known elements follow the data, and axes that
// are an attribute in old opsets and an input in new ones.
#pragma once

#include "ops/op.hpp"

namespace troupe {

/// Sets outputs 0… to input 0's type and the given dims. If the elements of the first `data_inputs` inputs are known on
/// the host, so are those of the outputs: the operator's own reference kernel moves indices to find which goes where.
void set_moved(infer_context& c, std::vector<symbolic_shape> outputs, size_t data_inputs = 1);

/// Returns integers that are input `i`, or attribute `name` if that input is absent; nullopt if neither is there.
/// The inference variant throws `errc::unsupported` if the input is not a host-known constant.
std::optional<std::vector<int64_t>> integers_of(const infer_context& c, size_t i, std::string_view name);
std::optional<std::vector<int64_t>> integers_of(const kernel_context& c, size_t i, std::string_view name);

/// Returns axes counted from the front; throws `errc::invalid_model` if one is out of range or occurs twice.
std::vector<size_t> normalize_axes(std::span<const int64_t> axes, size_t rank);

/// Returns the product of dims[first, last).
int64_t product(std::span<const int64_t> dims, size_t first, size_t last);

/// Returns output `i` with the dims that the data asked for: allocated now, unless inference knew them already.
mutable_view output_of(kernel_context& c, size_t i, const shape& dims);

/// Returns `index` counted from the front; throws `errc::invalid_input` unless -bound ≤ index < bound.
inline int64_t checked_index(int64_t index, int64_t bound) {
  if (index < -bound || index >= bound)
    fail(errc::invalid_input, "index {} is out of bounds for a dim of {}", index, bound);
  return index < 0 ? index + bound : index;
}

} // namespace troupe
