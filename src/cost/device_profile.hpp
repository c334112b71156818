// How fast a device is, in the terms of the cost model: plain data, copied freely, fabricated in tests.
//
// A profile is measured once (`troupe profile --calibrate`, profile_file.hpp); until then a device states what is usual
// for one of its kind and size. The model is a roofline: a node takes its launch plus the longer of arithmetic and
// memory traffic. If nodes were measured too (`troupe profile MODEL --keep`, node_times.hpp), their times count
// instead.
#pragma once

#include "tensor/dtype.hpp"

#include <array>
#include <limits>
#include <memory>

namespace troupe {

class node_times;

/// Kinds of arithmetic that devices do at speeds of their own.
enum class arithmetic : uint8_t {
  float64,
  float32,
  float16,
  bfloat16,
  int8,
  other, // wider integers, booleans, strings
};
inline constexpr size_t arithmetic_count = 6;

/// Returns the enumerator's name.
std::string_view to_string(arithmetic kind);

/// Returns how a node computes whose operands have this type.
arithmetic arithmetic_of(dtype type);

/// One direction between a device and the host's memory.
struct link_speed {
  double bytes_per_s = std::numeric_limits<double>::infinity(); // infinite: the device works in the host's memory
  double latency_s = 0;

  bool operator==(const link_speed&) const = default;
};

/// See the top of this file. Every speed is above 0, every time at least 0.
struct device_profile {
  /// Best speed of matrix products and convolutions, operations a second, by `arithmetic`; a multiplication and an
  /// addition count as two.
  std::array<double, arithmetic_count> flops_per_s{5e10, 1e11, 1e11, 1e11, 1e11, 1e10};
  /// Speed at which a large elementwise node reads and writes.
  double memory_bytes_per_s = 1e10;
  /// What a node costs beside its work.
  double launch_s = 1e-6;
  /// What a barrier between two waves costs.
  double barrier_s = 0;
  /// From sending a chunk to having its answer, the work of the chunk aside.
  double chunk_s = 1e-5;
  /// What one more chunk costs the device beside its work.
  double submit_s = 4e-6;
  /// What a chunk takes longer if the threads that send it, compute it and wait for it sleep when it comes, since they
  /// had nothing to do for a while.
  double wake_s = 0;
  link_speed up, down; // host to device, device to host
  /// Speed at which the host copies a caller's input to memory that the device reads; infinite if it need not.
  double input_bytes_per_s = std::numeric_limits<double>::infinity();
  /// Measured times of nodes there; null if there are none.
  std::shared_ptr<const node_times> measured;

  bool operator==(const device_profile&) const = default; // equal tables in two places differ
};

/// Returns what is usual for a CPU that computes with this many threads.
device_profile typical_cpu(int threads);

/// Returns what is usual for a GPU with this many multiprocessors; `matrix_units`: that multiplies float16 matrices in
/// hardware.
device_profile typical_gpu(uint32_t units, bool matrix_units);

/// Returns what is usual for a GPU that a driver emulates on this many cores.
device_profile typical_software_gpu(int cores);

} // namespace troupe
