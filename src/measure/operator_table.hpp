// Measured beside predicted times of a model's nodes, summed up.
#pragma once

#include "trace/run_trace.hpp"

namespace troupe {

/// All nodes of one operator on one device.
struct operator_row {
  int nodes = 0;
  double measured_ms = 0, predicted_ms = 0;
};

/// By the names of device and operator.
using operator_table = std::map<std::pair<std::string, std::string>, operator_row>;

/// Sums up one traced run, bodies aside. `dims`: of its plan's values, see `predict`.
operator_table table_of(const run_trace& run, std::span<const shape> dims);

} // namespace troupe
