// A run as it is drawn, of whatever made it: lanes of devices, bars of work on their tracks, edges between bars,
// counters. Plain data: traces of real runs become one (`timeline_of`), trace files are read into one (read_trace.hpp),
// a simulator fills one in; the trace file, the page, summaries and differences are made of it and know nothing else.
//
// Invariants (`check`): every index is in range, no bar ends before it begins, and the points of a counter are in the
// order of their times. Times are nanoseconds since the run's begin.
#pragma once

#include "trace/run_trace.hpp"

namespace troupe {

/// What a bar shows.
enum class bar_kind : uint8_t {
  run,      // all of it
  chunk,    // from its first node to its last; nodes and moves of the chunk are bars of their own
  node,     // work
  upload,   // a value on its way to the device
  download, // a value on its way from it
  other,    // in files that others wrote
};

/// Returns the enumerator's name.
std::string_view to_string(bar_kind kind);

/// A device, or what is not on any: "run".
struct timeline_lane {
  std::string name;
  std::string host; // empty: this process
};

/// Where bars are drawn that nest or follow each other.
struct timeline_track {
  uint32_t lane = 0;
  std::string name;
};

/// A range of time in which something was done. −1 and empty: not known, or meaningless for the kind.
struct timeline_bar {
  uint32_t track = 0;
  bar_kind kind = bar_kind::other;
  std::string name;
  int64_t begin_ns = 0, end_ns = 0;
  std::string op, kernel;                 // of nodes
  int64_t node = -1, chunk = -1;          // ids in the plan
  int64_t segment = -1, node_count = -1;  // of chunks
  int64_t sent_ns = -1, answered_ns = -1; // of chunks; both or none
  int64_t bytes = -1;                     // of moves

  int64_t duration_ns() const { return end_ns - begin_ns; }
};

/// The second bar begins after the first has ended, because it needs what that makes.
struct timeline_edge {
  uint32_t from = 0, to = 0;
};

struct counter_point {
  int64_t at_ns = 0;
  std::vector<int64_t> values; // by series; they hold until the next point
};

/// A quantity of a lane over time, of one series or of several that add up. Those called "memory" are in bytes, others
/// count.
struct timeline_counter {
  uint32_t lane = 0;
  std::string name; // unique in its lane
  std::vector<std::string> series;
  std::vector<counter_point> points;
};

/// See the top of this file.
struct timeline {
  std::string title; // for people; may be empty
  int64_t end_ns = 0;
  std::vector<timeline_lane> lanes;
  std::vector<timeline_track> tracks; // ascending by lane
  std::vector<timeline_bar> bars;
  std::vector<timeline_edge> edges;
  std::vector<timeline_counter> counters;
};

/// Throws `errc::invalid_argument` naming what breaks an invariant.
void check(const timeline& t);

/// Returns a traced run as a timeline. Lane 0 is "run", with control flow; the others are the plan's devices, in their
/// order. Of each device there is a track for chunks and one for each queue (more if what is there overlaps), and two
/// counters:
///
/// - "queue": chunks sent to it and not yet answered.
/// - "memory": weights, the bytes of the constants that its nodes read, which it holds throughout; values, the bytes of
///   the run's arena slot that hold a value, as the plan's lifetimes say, each from the begin of the node that makes it
///   to the end of the last one that reads it; on devices that compute in the host's memory also leaving, the values
///   made for other devices, later segments and the caller, which are not in the arena.
///
/// Not counted: what other runs and sessions hold, kernels' scratch memory, and the reserved part of the arena that
/// holds no value.
timeline timeline_of(const run_trace& trace);

/// Returns the trace file (to_chrome_json in troupe/results.hpp).
std::string to_chrome_json(const timeline& t);

/// Returns the same in the format of Paje (to_paje in troupe/inspect.hpp).
std::string to_paje(const timeline& t);

/// Returns the bars of the critical path, ascending: from the chunk that ended last backwards, each time to what it
/// waited for last: of the chunks that an edge leads from and the one before on its track, that which ended last.
/// (Fields, Rubin, Bodík, "Focusing processor policies via critical-path prediction", ISCA 2001: last-arriving edges.)
/// With each chunk its nodes and moves are on the path. Timelines without chunks: of all bars.
std::vector<uint32_t> critical_path(const timeline& t);

} // namespace troupe
