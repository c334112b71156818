// Checks an arena layout from the chunks alone, without `plan::lifetimes`: when is each value's storage in use?
#pragma once

#include "plan/bind/bound_plan.hpp"

namespace troupe::test {

/// Checks that arena values which are in use in the same wave (on host-memory devices: at the same node) do not
/// overlap, except an in-place output and the input that it may overwrite. Throws `errc::internal` naming the values.
void verify_memory(const bound_plan& b);

} // namespace troupe::test
