// Device names as people write them: "cpu", "vulkan:0", "null", "slow:25", "cpu*2" (two on one physical device), "all".
#pragma once

#include "plan/device_info.hpp"

#include <vector>

namespace troupe::actors {

/// One device to open.
struct device_request {
  device_kind kind = device_kind::cpu;
  /// Unique: "cpu", further instances "cpu#1", "cpu#2" ….
  std::string name;
  /// Number of the GPU, as in "vulkan:0".
  size_t gpu = 0;
  /// Of the CPU's speed, as in "slow:25".
  int percent = 100;
  /// Whether it was added without being asked for: it runs what the others cannot.
  bool fallback = false;
  /// Whether it was asked for by "all": then it need not open.
  bool by_all = false;
};

/// Names of this machine's devices, and those of other hosts ("NAME/cpu").
struct split_names {
  std::vector<std::string> here, elsewhere;
};
split_names split_device_names(const std::vector<std::string>& names);

/// Returns whether the names may mean a GPU, so that the GPUs must be listed.
bool may_name_gpus(const std::vector<std::string>& names);

/// Returns what the names ask for, in their order; "all" is the first `hardware_gpus` GPUs, then the CPU. GPUs without
/// the CPU get it as a fallback. Throws `errc::invalid_argument` for unknown names, for a device asked for twice and
/// for counts outside [1, 256].
std::vector<device_request> parse_device_names(const std::vector<std::string>& names, size_t hardware_gpus);

} // namespace troupe::actors
