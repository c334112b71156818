// The way of a run, hop by hop, from traces: what a call waits for besides its device.
#pragma once

#include "trace/run_trace.hpp"

#include <optional>
#include <span>

namespace troupe {

/// Milliseconds of one run on one device, one after the other; together they are the whole run.
struct run_hops {
  double to_device = 0;  // from the call until the coordinator sends the first chunk
  double to_work = 0;    // from there until the device begins: message, inputs, submission
  double work = 0;       // from the device's first work to its last, gaps and moves by the device included
  double to_session = 0; // from there until the coordinator has the last answer: waiter, outputs, message
  double to_caller = 0;  // from there until the caller has the result
};

/// Returns the hops of a traced run: all chunks together count as one. None if no device did anything.
std::optional<run_hops> hops_of(const run_trace& trace);

/// Returns the median of each hop over at least one run.
run_hops median_hops(std::span<const run_hops> runs);

} // namespace troupe
