// What happened in one run: when each chunk was sent and answered, and what the devices did for it. Plain data.
#pragma once

#include "device/device.hpp"

namespace troupe {

/// One chunk of a run. Times as in `device_timing`.
struct chunk_trace {
  chunk_id chunk = 0;
  int64_t sent_ns = 0;  // by the coordinator, to the device's actor
  int64_t ended_ns = 0; // when the coordinator had the answer
  std::vector<device_timing> timings;
};

/// What a segment of a run takes of each device's memory, as it was bound. Arena slots of other executions do not
/// count.
struct segment_memory {
  std::vector<std::vector<int64_t>>
      live;                         // by device: bytes of its arena that hold a value, by position (`device_lifetimes`)
  std::vector<int64_t> value_bytes; // by value
};

/// Adds what executions of a layout take, at the place of its segment. Segments come in their order; those without
/// chunks may be left out.
void add_memory(std::vector<segment_memory>& segments, const arena_layout& layout);

/// One run (`run_options::trace`): of a run that lost a device, the attempt that succeeded.
struct run_trace {
  std::shared_ptr<const plan> source; // what chunks, nodes, values and devices are meant; null if nothing was traced
  int64_t begin_ns = 0, end_ns = 0;   // from the call to the outputs
  std::vector<chunk_trace> chunks;    // in the order of their answers
  std::vector<segment_memory> memory; // by segment; empty if it is not known
  /// Executions of bodies of control flow, in the order of their ends; `name` says which: "Loop 'x', iteration 3".
  std::vector<run_trace> bodies;
  std::string name;
};

} // namespace troupe
