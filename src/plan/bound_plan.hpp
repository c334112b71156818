// A segment of a plan with concrete dims: shapes, host-known values and memory offsets. Immutable, shared by executions.
#pragma once

#include "plan/plan.hpp"

namespace troupe {

/// Arena layout of one device for one segment.
struct device_memory {
  int64_t arena_bytes = 0;
  /// Byte offset by value, a multiple of `arena_alignment`; -1 where the value is not in this device's arena: weights,
  /// host-known values, views (`root_on` says whose bytes they use), strings, values that the kernel allocates. On a device
  /// with host memory also uploads, which keep the caller's bytes, and roots of downloads: the device allocates a tensor of
  /// its own for a root that it produces, because the bytes leave it.
  std::vector<int64_t> offset;
  /// The most bytes that are live in the arena at one position (wave or node): what no layout can go below.
  int64_t peak_bytes = 0;
  /// Sum of the sizes of all arena values without reuse, for the report.
  int64_t bytes_without_reuse = 0;
  /// Bytes of uploads and of roots of downloads that are not in the arena.
  int64_t transfer_bytes = 0;
};

/// Every arena offset is a multiple of this: the largest minStorageBufferOffsetAlignment that Vulkan allows.
inline constexpr int64_t arena_alignment = 256;

/// Concrete shapes and memory of one segment (see the top of this file).
struct bound_plan {
  /// Unique in the process; devices know installed plans by it.
  uint64_t id = 0;
  std::shared_ptr<const plan> source;
  uint32_t segment = 0;
  std::vector<shape> dims;   // by value; for values of this and earlier segments (`segment_of_value`), else empty
  std::vector<tensor> known; // by value: bytes of host-known values that a node of this segment reads; else undefined
  std::vector<device_memory> memory; // by device
};

using bound_plan_ptr = std::shared_ptr<const bound_plan>;

/// Binds `segment` of `p`. `values` holds the symbols' values: those of the inputs and of earlier segments' outputs. Throws
/// `errc::invalid_input` where dims do not fit together, `errc::out_of_memory` with region, bytes needed and bytes allowed.
bound_plan_ptr bind_segment(std::shared_ptr<const plan> p, uint32_t segment, const bindings& values);

/// Checks from the chunks alone, without `plan::lifetimes`, that arena values which are in use in the same wave (on host-memory
/// devices: at the same node) do not overlap, except an in-place output and the input that it may overwrite. Throws `errc::internal`
/// naming the values. For tests and for plans that were edited.
void verify(const bound_plan& b);

} // namespace troupe
