// How a model is prepared and run, and what comes back: plain data that callers and the session machine share.
#pragma once

#include "device/resident.hpp"
#include "plan/plan_cache.hpp"
#include "rewrite/rewrite.hpp"
#include "trace/run_trace.hpp"

#include <chrono>
#include <stop_token>

namespace troupe {

/// How a model is prepared.
struct session_options {
  placement_policy policy = placement_policy::single;
  /// Nodes whose device the caller chooses, whatever the policy.
  std::vector<placement_pin> pins;
  /// A plan saved as JSON (`troupe plan --json`), perhaps edited: placement and chunks are as it says, or loading fails with
  /// `errc::invalid_plan`. When one of the engine's devices is lost, the policy decides again. Empty for none.
  std::string plan_file;
  /// Whether the rewrite fuses; off for experiments and tests. Folding and clean-up always happen.
  bool fuse = true;
  /// Which float types the model computes in; its inputs and outputs keep theirs.
  troupe::precision precision = troupe::precision::fp32;
  /// Outputs wanted, in this order; empty means all, in the model's order. Work that only others need is left out.
  std::vector<std::string> outputs;
  /// Values for symbolic dims, where inputs alone do not say them or an error is wanted when they differ.
  bindings dims;
};

/// How one run is done.
struct run_options {
  /// Inputs that lie on a device, beside those given as host tensors. Where the plan wants one elsewhere, it goes through the
  /// host first (`run_stats::fetched_bytes`).
  named_device_tensors device_inputs;
  /// Outputs to leave on the device that makes them: they are in `run_result::kept`, not in `outputs`.
  std::vector<std::string> keep;
  /// Longest time the run may take; then it ends with `errc::timeout`. Zero, as well as more than a hundred years: no limit.
  std::chrono::milliseconds timeout{0};
  /// Ends the run with `errc::cancelled` when a stop is requested.
  std::stop_token cancel;
  /// Whether `run_result::trace` is wanted: every node's time is taken.
  bool trace = false;
};

/// A model input or output, as the file declares it.
struct value_info {
  std::string name;
  dtype type = dtype::undefined;
  /// Dims, symbolic where the file names them; nullopt where the file states no shape.
  std::optional<symbolic_shape> dims;
};

/// What a run cost.
struct run_stats {
  double total_ms = 0;
  bool plan_cached = false;
  uint32_t chunks = 0;
  /// Bytes of `run_options::device_inputs` that had to come to the host first.
  int64_t fetched_bytes = 0;
  /// Devices lost during the run; their work was done again on the others.
  std::vector<std::string> lost_devices;
  std::vector<std::pair<std::string, double>> busy_ms; // by device name

  /// Returns the part of the run's time that its devices computed, on average over those that computed at all: 1 where all
  /// of them did all the time.
  double parallel_efficiency() const;
};

using named_tensors = std::map<std::string, tensor>;

struct run_result {
  named_tensors outputs;
  named_device_tensors kept; // see run_options::keep
  run_stats stats;
  run_trace trace; // empty unless it was asked for
};

/// Counters of a session.
struct session_stats {
  uint64_t runs = 0;
  cache_stats plans; // each by its model, its devices with what they can and their free memory, and options
  /// Of plans with concrete dims, one lookup for each segment of a run and each body.
  cache_stats bound_plans;
  /// Of arena layouts, which misses of bound plans look for: new dims share one with others where they are in the same bucket.
  cache_stats layouts;
  double load_ms = 0;    // file → graph
  double rewrite_ms = 0; // of all rewrites
  double plan_ms = 0;    // of all plans and binds, installs included
};

/// An output that is an input of the next run.
struct output_binding {
  std::string output, input;
};

} // namespace troupe
