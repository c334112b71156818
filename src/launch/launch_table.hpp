// THE list of what GPUs run: the launch rules of every operator (launch_table.cpp).
#pragma once

#include "launch/launch.hpp"
#include "ops/implementation_table.hpp"

namespace troupe {

/// Returns the ways to run a call, best first; empty if a GPU cannot run it. Throws `errc::invalid_input` if operands
/// do not fit.
using launch_rule = launch_lists (*)(const gpu_call& call);

/// The table; operators outside of the registry are added before planning begins.
implementation_table<launch_rule>& launch_table();

/// Returns whether GPUs run any calls of an operator.
bool has_launch_rules(const op_def& def);

/// Returns the ways of all rules for `def`; see `launch_rule`.
launch_lists launches_of(const op_def& def, const gpu_call& call);

} // namespace troupe
