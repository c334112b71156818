// The CPU as a device: runs the nodes of a chunk one after the other on the calling thread, each through a kernel
// chosen and prepared when the plan is installed (kernel_list.hpp).
//
// Operand addresses: constants and host-known values are resolved at install, arena values once a slot, uploads are
// used in place, and what is downloaded is computed straight into a tensor of its own. A run allocates nothing but
// those.
#pragma once

#include "device/device.hpp"
#include "device/host_block.hpp"

namespace troupe {

struct cpu_device_options {
  /// Fills arena memory and outputs with bytes that are NaN as floats before they are written: tests see unwritten
  /// reads.
  bool poison = false;
  /// Where large outputs are, so that the GPUs of this process read them without a copy; null: in memory of the
  /// device's own.
  std::shared_ptr<host_block_pool> blocks;
  /// Threads that a kernel may use, the device's own included; 0: as many as `thread_count` says.
  int threads = 0;
};

/// Makes a CPU device called `name`.
std::unique_ptr<device> make_cpu_device(std::string name, cpu_device_options options = {});

} // namespace troupe
