// What slows a traced run down: one rule for each cause, each asking the replay what the run would take without it.
#pragma once

#include "trace/run_trace.hpp"
#include "troupe/monitor.hpp"

namespace troupe::monitoring {

/// A cause that gains less of the time is none.
inline constexpr double least_gain = 0.1;

/// Returns how much it matters that so much of the time is lost.
severity severity_of(double part);

/// Orders findings: what gains most first.
void rank(std::vector<finding>& findings);

/// As `troupe::find_bottlenecks`; `dims`: of the values of the trace's plan (see `predict`), against which times are
/// compared. Without them, expected ones count, and predicted times are compared only where no dim is symbolic.
std::vector<finding> find_bottlenecks(const run_trace& trace, std::span<const shape> dims);

} // namespace troupe::monitoring
