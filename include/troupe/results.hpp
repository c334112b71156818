// What a model declares, what a run gives, and counters: plain data.
#pragma once

#include "troupe/device.hpp"
#include "troupe/dim.hpp"
#include "troupe/options.hpp"

#include <optional>
#include <utility>

namespace troupe {

/// A model input or output, as the file declares it.
struct value_info {
  std::string name;
  dtype type = dtype::undefined;
  /// Dims, symbolic if the file names them; nullopt if the file states no shape.
  std::optional<symbolic_shape> dims;
};

/// What a run cost.
struct TROUPE_API run_stats {
  double total_ms = 0;
  bool plan_cached = false;
  uint32_t chunks = 0;
  /// Bytes of `run_options::device_inputs` that had to come to the host first.
  int64_t fetched_bytes = 0;
  /// Devices lost during the run; their work was done again on the others.
  std::vector<std::string> lost_devices;
  /// Of a bound session: earlier steps that were taken again, because a device with their values was lost.
  uint64_t repeated_steps = 0;
  std::vector<std::pair<std::string, double>> busy_ms; // by device name

  /// Returns the part of the run's time that its devices computed, on average over those that computed at all: 1 if all
  /// of them did all the time.
  double parallel_efficiency() const;
};

/// What happened in one run: when each part was sent, began and ended, and on which device.
struct run_trace;

/// Returns the trace as one JSON document in the format that chrome://tracing and ui.perfetto.dev open ("Trace Event
/// Format"). Times are microseconds since the run began, on this process's clock, those of other hosts too. Process 0,
/// "troupe", has the run and this process's devices; each other host is a process of its name. A device's first track
/// has its chunks, those after it the nodes and moves of each queue (several tracks if they overlap); "waiting" spans
/// reach from the moment a chunk was sent to the moment its answer had come back. Arrows lead from each chunk to its
/// dependents; counters say what the run holds on each device, and its queue.
TROUPE_API std::string to_chrome_json(const run_trace& trace);

/// What a run gives.
struct run_result {
  named_tensors outputs;
  named_device_tensors kept; // see run_options::keep
  run_stats stats;
  std::shared_ptr<const run_trace> trace; // null unless it was asked for: run_options::trace
};

/// How a run ended, for callbacks.
struct run_outcome {
  run_result result;            // counts if there is no failure
  std::optional<error> failure; // what `session::run` would have thrown
};

/// Counters of a cache, since it was made.
struct cache_stats {
  uint64_t hits = 0;
  uint64_t misses = 0;
  uint64_t evictions = 0;
};

/// One of the devices, or groups of devices, between which a session's strategy divides the work.
struct replica_stats {
  std::vector<std::string> devices; // by name
  bool living = true;
  std::string why_not; // if it is not living, or rests because it would hardly help
  uint64_t pieces = 0; // that ended well
  int64_t rows = 0;    // of those
  double busy_ms = 0;  // while it had a piece
  double row_ms = 0;   // for each row, measured; the prediction before
  double piece_ms = 0; // for each piece beside
  double predicted_row_ms = 0;
};

/// Counters of a session's queue of requests (`session::submit`).
struct stream_stats {
  uint64_t answered = 0; // those that failed included
  uint64_t failed = 0;
  uint64_t late = 0;         // of those that failed: by their deadline, or because they would have missed it
  size_t waiting = 0;        // for a replica
  size_t in_flight = 0;      // pieces
  std::string rows;          // the symbolic dim that counts the rows of a batch; empty if requests run whole …
  std::string whole_because; // … for this reason
  std::vector<replica_stats> replicas;

  /// Adds those of another queue of the same session, which is newer: it says what `rows` are.
  TROUPE_API stream_stats& operator+=(const stream_stats& other);
};

/// One way to run a model, as `strategy::automatic` sees it. Times are predicted.
struct strategy_choice {
  troupe::strategy strategy = troupe::strategy::none;
  placement_policy policy = placement_policy::single;
  std::vector<std::string> devices; // by name; those that only help out are not listed
  int64_t micro_batch = 0;          // most rows of a piece; 0: requests are not cut, or into one share a device
  double latency_ms = 0;            // of one request alone
  double requests_per_s = 0;        // if there are always more
  int64_t memory_bytes = 0;         // on all devices together, with as many requests in flight as it takes
  bool has_plan = false;            // that fits the devices; without one there are no figures
  bool possible = true;             // it has one, within the limits of `choice_options`
  std::string why;                  // it was chosen, or was not
};

/// Counters of a session.
struct session_stats {
  uint64_t runs = 0;
  cache_stats plans; // each by its model, its devices with what they can and their free memory, and options
  /// Of plans with concrete dims, one lookup for each segment of a run and each body.
  cache_stats bound_plans;
  /// Of arena layouts, which misses of bound plans look for: new dims share one with others where they are in the same
  /// bucket.
  cache_stats layouts;
  double load_ms = 0;    // file → graph
  double rewrite_ms = 0; // of all rewrites
  double plan_ms = 0;    // of all plans and binds, installs included

  /// Adds those of another replica; it loaded the same file.
  TROUPE_API session_stats& operator+=(const session_stats& other);
};

} // namespace troupe
