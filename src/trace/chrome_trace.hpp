// Run traces in the JSON format that chrome://tracing and ui.perfetto.dev open ("Trace Event Format", array of events).
#pragma once

#include "trace/run_trace.hpp"

namespace troupe {

/// Returns the trace as one JSON document; times are microseconds since the run began. A process is a device: its first track
/// has the chunks, those behind it the nodes and moves of each queue (several tracks where they overlap); "waiting" spans reach
/// from the moment a chunk was sent to the moment its answer had come back. Arrows lead from each chunk to its dependents.
/// Process 0 has the run.
std::string to_chrome_json(const run_trace& trace);

} // namespace troupe
