// What GPUs leave to the CPU, and why: operators that have no launch rules, and calls of others that their rules
// refuse. For people: `troupe operators` prints it; a test compares it with the launch table.
#pragma once

#include <span>
#include <string_view>

namespace troupe {

/// Operators that stay on the CPU as a whole.
struct cpu_operators {
  std::string_view reason;
  std::string_view operators; // in alphabetical order, with a space between
  std::string_view domain = {};
};

/// Calls of operators that have GPU kernels.
struct cpu_calls {
  std::string_view operators; // of ai.onnx, as above
  std::string_view calls, reason;
};

std::span<const cpu_operators> operators_on_cpu();
std::span<const cpu_calls> calls_on_cpu();

} // namespace troupe
