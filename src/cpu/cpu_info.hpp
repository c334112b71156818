// What this machine's processor and memory are, from /proc and /sys.
#pragma once

#include <cstdint>
#include <string>

namespace troupe {

/// Returns the processor's model name as /proc/cpuinfo states it, "CPU" if it does not.
std::string cpu_model_name();

/// Returns the bytes of memory this process may use: the machine's, or its control group's limit if that is lower.
int64_t usable_memory_bytes();

} // namespace troupe
