// The rules of the Trace Event Format, so that no viewer has to guess: what a file must hold for chrome://tracing and
// ui.perfetto.dev to draw it.
#pragma once

#include "trace/trace_events.hpp"

namespace troupe {

/// What is wrong with a trace file.
struct trace_problems {
  static constexpr size_t most_listed = 100;

  size_t events = 0;
  size_t count = 0;
  std::vector<std::string> listed; // the first of them: "event 12 (X 'conv1'): …"
};

/// Checks a trace file: each phase's required fields; times that are numbers, durations not below zero; slices of one
/// track (B with E, and X) that nest; asynchronous spans (b, n, e) and objects that are begun before they end; flows
/// that begin once, inside of a slice, and end inside of one, later; counters that are numbers; metadata of the right
/// type. Time is O(n log n). Throws `errc::invalid_input` if it is not a trace at all.
trace_problems check_trace(std::string_view text);

} // namespace troupe
