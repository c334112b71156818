// Features of GPUs that need not be there, for launch rules.
#pragma once

#include "launch/launch.hpp"

namespace troupe::testing {

/// An H100's sizes, and float16; a test adds other features.
inline gpu_features h100_like() {
  return {.max_group_size = 1024,
          .shared_bytes = 49152,
          .max_groups = {1u << 31, 65535, 65535},
          .max_binding_bytes = int64_t{1} << 32,
          .float16 = true,
          .units = 132};
}

} // namespace troupe::testing
