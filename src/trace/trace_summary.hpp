// What a timeline says in figures: how busy its lanes were, what took longest.
#pragma once

#include "trace/timeline.hpp"

namespace troupe {

/// One lane.
struct lane_summary {
  int64_t busy_ns = 0; // in which any of its bars but chunks lasted; without such bars, its chunks
  double work_ns = 0;  // of nodes, added up
  double move_ns = 0;  // of uploads and downloads, added up
  size_t nodes = 0, moves = 0;
  int64_t peak_bytes = -1; // of "memory", all series together; −1: not known
  int64_t peak_queue = -1; // of "queue"
};

/// See the top of this file.
struct trace_summary {
  std::vector<lane_summary> lanes; // by lane
  std::vector<uint32_t> longest;   // bars that are nodes (others where there are none), the longest first
  std::vector<uint32_t> critical;  // critical_path
  int64_t critical_ns = 0;         // in which any of its nodes and moves lasted
};

/// Returns the summary, with the `most` longest nodes.
trace_summary summary_of(const timeline& t, size_t most);

} // namespace troupe
