// A segment of a plan with concrete dims: shapes, host-known values and memory offsets. Immutable, shared by executions.
#pragma once

#include "plan/plan.hpp"

namespace troupe {

/// Arena layout of one device for one segment.
struct device_memory {
  int64_t arena_bytes = 0;
  /// Byte offset by value; -1 where the value is not in this device's arena (weights, host-known values; on a device with
  /// host memory also uploads and downloads, which use the caller's bytes, and views, which use their source's).
  std::vector<int64_t> offset;
  /// Sum of the sizes of all arena values without reuse, for the report.
  int64_t bytes_without_reuse = 0;
};

/// Concrete shapes and memory of one segment (see the top of this file).
struct bound_plan {
  /// Unique in the process; devices know installed plans by it.
  uint64_t id = 0;
  std::shared_ptr<const plan> source;
  uint32_t segment = 0;
  std::vector<shape> dims;           // by value; meaningful for values of this and earlier segments
  std::vector<tensor> known;         // by value: bytes of host-known values that a node of this segment reads; else undefined
  std::vector<device_memory> memory; // by device
};

using bound_plan_ptr = std::shared_ptr<const bound_plan>;

/// Binds `segment` of `p`. `values` holds the symbols' values: those of the inputs and of earlier segments' outputs. Throws
/// `errc::invalid_input` where dims do not fit together, `errc::out_of_memory` with region, bytes needed and bytes allowed.
bound_plan_ptr bind(std::shared_ptr<const plan> p, uint32_t segment, const bindings& values);

} // namespace troupe
