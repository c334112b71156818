// Arena offsets from lifetimes and sizes.
//
// Values are placed in the order in which they are made, each into the smallest free gap that holds it (best fit); a
// value whose last use has passed frees its gap, which joins its neighbours. An in-place output takes over the bytes of
// an input that dies at its node, if their shapes are equal. Two values that are live at the same position never
// overlap otherwise. Time is O(n log n).
#pragma once

#include "plan/bind/arena_layout.hpp"

namespace troupe {

/// Lays out the arena of one device. `bytes` is by value, the size of each; `dims` are the concrete shapes. Throws
/// `errc::out_of_memory` if the sum of sizes overflows.
device_memory lay_out(const device_lifetimes& lifetimes, std::span<const shape> dims, std::span<const int64_t> bytes);

/// Returns the bytes of the arena that hold a value, by position; `memory` is what `lay_out` gave. The largest is its
/// `peak_bytes`.
std::vector<int64_t> live_bytes(const device_lifetimes& lifetimes, const device_memory& memory,
                                std::span<const int64_t> bytes);

} // namespace troupe
