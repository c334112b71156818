// What the host can make of a float32 input while it writes it to a device's memory, instead of a node that reads
// nothing else.
#pragma once

#include "graph/graph.hpp"

#include <optional>

namespace troupe {

struct input_conversion {
  dtype to = dtype::undefined; // float16: troupe.ToFloat16; uint8 or int8: QuantizeLinear
  float scale = 1, zero = 0;   // of QuantizeLinear
};

/// Returns what node `n` does if it is such a conversion: to float16, or to bytes with one constant scale and zero
/// point. Nullopt if it is not.
std::optional<input_conversion> input_conversion_of(const graph& g, const node& n);

/// Writes `count` elements as the node's reference kernel does. `to` may be memory that is slow to read.
void convert_input(const input_conversion& how, const float* from, std::byte* to, int64_t count);

} // namespace troupe
