// GPUs in tests: the first one of the machine (lavapipe if there is no other), under the validation layer.
#pragma once

#include "vulkan/vulkan_device.hpp"

namespace troupe::test {

/// The instance of all GPU tests: under the validation layer with synchronization validation, if that is installed
/// (another test shows whether it is).
const std::shared_ptr<const vulkan::instance>& gpus();

/// Opens GPU 0 as a device.
std::unique_ptr<device> open_gpu(const vulkan::vulkan_device_options& options = {},
                                 const std::string& name = "vulkan:0");

/// Returns whether the validation layer watches.
bool gpus_are_validated();

/// Returns the validation layer's messages since the last call, joined; empty if there are none.
std::string new_gpu_messages();

} // namespace troupe::test
