// What a traced run held in its devices' memory over time: the bound plan's lifetimes, at the times that the trace has.
#pragma once

#include "trace/timeline.hpp"

#include <map>

namespace troupe {

/// A number that changes over time, as steps: what is added when.
using counter_steps = std::map<int64_t, int64_t>;

/// What a run, bodies included, takes of one device's memory (`timeline_of` says what is counted), in the trace's own
/// times.
struct memory_steps {
  counter_steps values, leaving;
};

/// Adds what a run without its bodies takes of each device's memory; `devices` has one for each of the plan's. Adds
/// nothing if the trace does not know.
void add_memory(const run_trace& trace, std::vector<memory_steps>& devices);

/// Returns the counter of a lane: of each series the sum of its steps, from `begin_ns`, which is time 0; what is
/// earlier counts from there.
timeline_counter counter_of(uint32_t lane, std::string name,
                            const std::vector<std::pair<std::string, const counter_steps*>>& series, int64_t begin_ns);

} // namespace troupe
