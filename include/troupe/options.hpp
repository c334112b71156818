// How an engine is made, how a model is prepared, how one run is done: plain data. Members have initialisers, `{}` too, so that naming some
// of them makes no compiler warn of the others.
#pragma once

#include "troupe/device.hpp"
#include "troupe/dim.hpp"

#include <chrono>
#include <stop_token>

namespace troupe {

// -- an engine

/// How chunks learn that their predecessors on the same device are done.
enum class completion_mode : uint8_t {
  device, // a device's own order is trusted (the default)
  host,   // every completion goes through the host, for experiments
};

/// Who this process is to other hosts: PEM files, as `troupe keys` makes them.
struct host_credentials {
  std::string certificate = {};
  std::string key = {};
  /// The cluster's CA: whoever has a certificate that it signed is a trusted member.
  std::string ca = {};
  /// Plain TCP, readable and changeable by anybody on the way, to workers that say the same.
  bool insecure = false;
};

/// What an engine is made of.
struct engine_options {
  /// Device names: "cpu", "vulkan:0" (a GPU), "null", "slow:25" (the CPU at 25 % of its speed, for experiments); "cpu*2" opens two on one physical device; "all" is every GPU and the
  /// CPU. GPUs without the CPU get it as a fallback for nodes that they cannot run. Those of `hosts` are called "NAME/cpu": if some of
  /// them are named here, only those join.
  std::vector<std::string> devices = {"all"};
  /// Other hosts, on which `troupe worker` lends its devices: "[NAME=]HOST:PORT", or "@FILE" with one a line. See `engine::add_host`.
  std::vector<std::string> hosts = {};
  host_credentials credentials = {};
  completion_mode completion = completion_mode::device;
  /// Worker threads of the actor system.
  unsigned scheduler_threads = 2;
  /// A device that has work and shows no progress for this long counts as lost and is abandoned; its runs are done again on
  /// the other devices. Must exceed what a GPU takes for its longest chunk and to load a model's weights; a CPU is never silent,
  /// however long it computes. Zero, as well as more than a hundred years: devices are waited for without end, and for ten minutes when
  /// the engine closes.
  std::chrono::milliseconds device_timeout = std::chrono::minutes(10);
  /// Bytes that plans may use, by device name, if that is less than the device has.
  std::map<std::string, int64_t> memory = {};
  /// What `troupe profile` measured and kept; empty: the file in the user's cache folder. One that cannot be used is ignored, see
  /// `engine::profile_problem`.
  std::string profile_file = {};
};

// -- a model

/// How nodes are placed on devices.
enum class placement_policy : uint8_t {
  single,        // everything on the first device that can run it
  round_robin,   // alternating by node over the devices that can run it
  weighted,      // contiguous shares of equal predicted time, in the graph's order
  greedy_memory, // a device is filled before the next: GPUs in order, then other devices, fallback devices last
  heft,          // earliest predicted finish, moves between devices included
  dmda,          // the same in the graph's order, without looking ahead
  pipeline, // contiguous stages, one a device in their order, the slowest as fast as can be: for several runs in flight
};

/// Says which device runs the nodes whose name, or an output's name, matches a pattern.
struct placement_pin {
  /// '*' stands for any text, '?' for any character; an exact name wins over patterns, then the later pin.
  std::string pattern;
  std::string device; // its name, e.g. "vulkan:0"

  bool operator==(const placement_pin&) const = default;
};

/// Which float types a model computes in.
enum class precision : uint8_t {
  fp32,      // float32 everywhere the file says so
  fp16,      // float32 weights and activations become float16; inputs and outputs keep their types
  automatic, // what the file says; the same as fp32 so far, since nothing is converted
};

/// How a model is prepared.
struct session_options {
  placement_policy policy = placement_policy::single;
  /// Nodes whose device the caller chooses, whatever the policy.
  std::vector<placement_pin> pins = {};
  /// A plan saved as JSON (`session::plan`, `troupe plan --json`), perhaps edited: placement and chunks are as it says, or loading fails
  /// with `errc::invalid_plan`. When one of the engine's devices is lost, the policy decides again. Empty for none.
  std::string plan_file = {};
  /// Whether the rewrite fuses; off for experiments and tests. Folding and clean-up always happen.
  bool fuse = true;
  /// Which float types the model computes in; its inputs and outputs keep theirs.
  troupe::precision precision = troupe::precision::fp32;
  /// Outputs wanted, in this order; empty means all, in the model's order. Work that only others need is left out.
  std::vector<std::string> outputs = {};
  /// Values for symbolic dims, if inputs alone do not say them or an error is wanted when they differ.
  bindings dims = {};
};

/// An output that is an input of the next run.
struct output_binding {
  std::string output, input;
};

// -- a run

/// How one run is done.
struct run_options {
  /// Inputs that are on a device, beside those given as host tensors. If the plan wants one elsewhere, it goes through the
  /// host first (`run_stats::fetched_bytes`).
  named_device_tensors device_inputs = {};
  /// Outputs to leave on the device that makes them: they are in `run_result::kept`, not in `outputs`.
  std::vector<std::string> keep = {};
  /// Longest time the run may take; then it ends with `errc::timeout`. Zero, as well as more than a hundred years: no limit.
  std::chrono::milliseconds timeout{0};
  /// Ends the run with `errc::cancelled` when a stop is requested.
  std::stop_token cancel = {};
  /// Whether `run_result::trace` is wanted: every node's time is taken.
  bool trace = false;
};

} // namespace troupe
