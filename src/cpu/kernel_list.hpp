// The CPU's kernels by operator, in order of preference. THE list: a fast kernel exists because a row names it.
#pragma once

#include "cpu/kernel.hpp"
#include "ops/implementation_table.hpp"

namespace troupe {

/// A way to run an operator. `make` returns null if it does not take the call (type, shape, layout, attributes).
struct kernel_rule {
  std::string_view name; // of the implementation, for profiles and tests
  kernel_ptr (*make)(const kernel_request&);
};

/// The table.
const implementation_table<kernel_rule>& kernel_table();

/// A prepared kernel and the name of its rule ("reference" for the last resort).
struct chosen_kernel {
  kernel_ptr run;
  std::string_view name;
};

/// Prepares the first kernel that takes the call. Throws `errc::unsupported` if not even the reference can (an operand
/// that is not plain, control flow).
chosen_kernel choose_kernel(const kernel_request& request);

} // namespace troupe
