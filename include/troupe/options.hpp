// How an engine is made, how a model is prepared, how one run is done: plain data. Members have initialisers, `{}` too,
// so that naming some of them makes no compiler warn of the others.
#pragma once

#include "troupe/device.hpp"
#include "troupe/dim.hpp"

#include <chrono>
#include <optional>
#include <stop_token>

namespace troupe {

// -- an engine

/// How chunks learn that their predecessors on the same device are done.
enum class completion_mode : uint8_t {
  device, // a device's own order is trusted (the default)
  host,   // every completion goes through the host, for experiments
};

/// When a GPU's driver compiles the kernels that suit the dims of a run best, which takes 0.1 to 2 s where a model's
/// dims are new.
enum class kernel_time : uint8_t {
  /// Beside the runs (the default): a run whose dims are new takes kernels that are there, perhaps slower ones, and
  /// later runs the best ones as soon as those are compiled. Outputs may then differ in their last bits from one run to
  /// the next, as they do from one GPU to another. Calls for which no kernel is there wait.
  later,
  /// Before the run, which waits: equal runs have equal outputs, bit by bit. For experiments.
  now,
};

/// Who this process is to other hosts: PEM files, as `troupe keys` makes them.
struct host_credentials {
  std::string certificate = {};
  std::string key = {};
  /// The cluster's CA: the owner of a certificate that it signed is a trusted member.
  std::string ca = {};
  /// Plain TCP, readable and changeable by anybody on the way, to workers that say the same.
  bool insecure = false;
};

/// Where an engine's sessions keep what happens to them, event by event, so that `troupe replay` can do it again.
struct recorder_options {
  /// The folder of the recordings, one file for each session; it is made if it does not exist. Empty: sessions keep
  /// nothing. One that cannot be made is refused when the engine is (`errc::io`).
  std::string folder = {};
  /// Bytes of memory for a session's last events. They are written out once, when the first run ends with an error that
  /// its caller did not ask for. 0: all events are written as they come.
  size_t memory = 0;
};

/// What an engine is made of.
struct engine_options {
  /// Device names: "cpu", "vulkan:0" (a GPU), "null", "slow:25" (the CPU at 25 % of its speed, for experiments);
  /// "cpu*2" opens two on one physical device; "all" is every GPU and the CPU. GPUs without the CPU get it as a
  /// fallback for nodes that they cannot run. Those of `hosts` are called "NAME/cpu": if some of them are named here,
  /// only those join.
  std::vector<std::string> devices = {"all"};
  /// Other hosts, on which `troupe worker` lends its devices: "[NAME=]HOST:PORT", or "@FILE" with one a line. See
  /// `engine::add_host`.
  std::vector<std::string> hosts = {};
  host_credentials credentials = {};
  completion_mode completion = completion_mode::device;
  /// Of this process's GPUs.
  kernel_time kernels = kernel_time::later;
  /// Worker threads of the actor system.
  unsigned scheduler_threads = 2;
  /// Threads of the CPU's kernels; several CPU devices ("cpu*2") share them. 0: one for each core that the process may
  /// use by its affinity and its control group's quota, or OMP_NUM_THREADS where that is less.
  unsigned cpu_threads = 0;
  /// A device that has work and shows no progress for this long counts as lost and is abandoned; its runs are done
  /// again on the other devices. Must exceed what a GPU, or any device of another host, takes for its longest chunk and
  /// to load weights; a CPU of this process is never silent, however long it computes. Zero, as well as more than a
  /// hundred years: devices are waited for without end, and for ten minutes when the engine closes.
  std::chrono::milliseconds device_timeout = std::chrono::minutes(10);
  /// Bytes that plans may use, by device name, if that is less than the device has.
  std::map<std::string, int64_t> memory = {};
  /// What `troupe profile` measured and kept; empty: the file in the user's cache folder. One that cannot be used is
  /// ignored, see `engine::profile_problem`.
  std::string profile_file = {};
  /// For finding faults.
  recorder_options recorder = {};
};

// -- a model

/// How nodes are placed on devices.
enum class placement_policy : uint8_t {
  single,        // everything on the first device that can run it
  round_robin,   // alternating by node over the devices that can run it
  weighted,      // contiguous shares of equal predicted time, in the graph's order
  greedy_memory, // a device is filled before the next: GPUs in order, then other devices, fallback devices last
  heft,          // earliest predicted finish, moves between devices included
  dmda,          // each node when it is ready, where it should end first with its moves; no looking ahead (StarPU)
  pipeline, // contiguous stages, one a device in their order, the slowest as fast as can be: for several runs in flight
  peft,     // as heft, and what follows best counts too (Arabnejad, Barbosa 2014)
  cpop,     // the longest path on one device, the others by earliest finish (Topcuoglu, Hariri, Wu 2002)
  min_min,  // of the nodes that are ready, the one that can finish first of all (Ibarra, Kim 1977)
  local_search, // heft, improved by moving nodes as long as that helps, within a fixed effort
  plug_in,      // what `session_options::policy_plugin` says
  dls,          // of the nodes that are ready, the pair of node and device of the highest level (Sih, Lee 1993)
  split,        // nodes are cut along an axis, a part on each device; one device where that is faster
  lookahead,    // as heft, and where the node's readers would end counts (Bittencourt, Sakellariou, Madeira 2010)
  iheft,        // as heft, but a node may wait for its fastest device (AlEbrahim, Ahmad 2017)
  hbmct,        // nodes that do not depend on each other as a group, balanced by moves (Sakellariou, Zhao 2004)
  dcp,          // the node on the longest path as it is by then, with its critical reader (Kwok, Ahmad 1996)
  optimal,      // the shortest schedule of up to 14 nodes; more are refused (`errc::unsupported`)
};

/// Says which device runs the nodes whose name, or an output's name, matches a pattern.
struct placement_pin {
  /// '*' matches any text, '?' any character; an exact name wins over patterns, then the later pin.
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

/// How the devices of a session share its work. Each device, or group of devices, that runs whole pieces of it is a
/// replica.
enum class strategy : uint8_t {
  none,           // one plan over the devices, as the policy says
  data_parallel,  // a replica a device; a batch is split, each replica gets one share of its rows
  model_parallel, // one plan over all devices (`heft` unless the policy says otherwise), several requests in flight
  pipeline,       // contiguous stages, one a device (`placement_policy::pipeline`), through which micro-batches flow
  work_stealing,  // a replica a device; an idle one takes the next micro-batch
  /// Whichever of these is predicted to be the best for the first request (`session_options::choice`). Choosing takes
  /// as long as planning all of them; meanwhile requests wait where they are submitted, within their time limits,
  /// `run_async` too.
  automatic,
  plug_in, // a replica a device; `session_options::strategy_plugin` says who takes what
  /// A run: as `none`. Requests that are submitted (`session::submit`): as `automatic` for the most requests a second,
  /// but no request waits for the choice. Until it is made, which takes a moment after the first request, they run as
  /// with `none`. If the devices are one, or the policy, pins, a plan or dims are given, all is as with `none`, and so
  /// it is for answers in the order of submission (`stream_options::ordered`).
  standard,
};

/// What a choice between strategies is to be good at.
enum class objective : uint8_t {
  latency,    // the time that one request takes alone
  throughput, // requests a second, if there are always more
};

/// What `strategy::automatic` is to choose, and within which limits; 0: no limit.
struct choice_options {
  objective goal = objective::latency;
  size_t max_devices = 0; // those that only help a GPU out, or take what fits nowhere else, do not count
  int64_t max_memory = 0; // bytes on all devices together
  std::chrono::microseconds max_latency{0};
};

/// How data-parallel shares are cut.
enum class share_rule : uint8_t {
  equal,    // as many rows for each replica
  weighted, // in proportion to the predicted speed
  adaptive, // so that all end together, by the speed measured so far; whole requests while all replicas are at work
};

/// When a pipeline takes the next micro-batch in.
enum class pipeline_schedule : uint8_t {
  one_in_one_out, // as one leaves, after the first ones have filled the stages
  fill_drain,     // at once: all of a request are in flight, each with memory of its own
};

/// How a session's queue of requests works (`session::submit`). Zero: the session chooses.
///
/// Cutting a request and joining several needs a proof that each row of every output depends on its own row of the
/// inputs alone. Without one, requests run whole; if `micro_batch` or `max_batch` ask for it, the first run ends with
/// `errc::unsupported`, naming the node.
struct stream_options {
  /// The most rows of a piece that is cut from a request.
  int64_t micro_batch = 0;
  /// Pieces in flight on a replica. 2 lets the next one upload while this one computes.
  size_t depth = 0;
  pipeline_schedule schedule = pipeline_schedule::one_in_one_out;
  share_rule shares = share_rule::adaptive;
  /// Dynamic batching: requests that wait are joined, up to this number of rows. Zero: never.
  int64_t max_batch = 0;
  /// How long a request waits for others to be joined with.
  std::chrono::microseconds max_delay{0};
  /// The most requests without an answer: then `submit` waits.
  size_t queue_limit = 1024;
  /// Whether answers come in the order of submission; else each comes as soon as it is there.
  bool ordered = false;
};

/// Part of an output: indices `start` to `end` − 1 along the dim `axis`, which stays. Negative numbers count from the
/// end, and an `end` after the last index is the last one, as in NumPy.
struct output_slice {
  std::string output;
  int64_t axis = 0;
  int64_t start = 0;
  int64_t end = INT64_MAX;

  bool operator==(const output_slice&) const = default;
};

/// How a model is prepared.
struct session_options {
  placement_policy policy = placement_policy::single;
  /// A placement policy of your own: the file of a shared library (troupe/policy.hpp). It is the policy then, whatever
  /// `policy` says. It runs in this process, with all its rights, and stays loaded as long as a session or plan may use
  /// it. One that cannot be used is refused when a model is loaded (`errc::io`, `errc::invalid_argument`). Empty for
  /// none.
  std::string policy_plugin = {};
  /// With policy `split`: the dim of results along which nodes are cut, whatever it costs; −1: the longest axis of each
  /// node. nullopt: what is predicted to be fastest, perhaps one device.
  std::optional<int> split_along = {};
  /// The devices that the session may use, by name; empty for all of the engine's.
  std::vector<std::string> devices = {};
  /// How they share the work.
  troupe::strategy strategy = troupe::strategy::standard;
  /// A strategy of your own: the file of a shared library (troupe/strategy.hpp). It is the strategy then, whatever
  /// `strategy` says. As with `policy_plugin`, it has all rights of this process. Empty for none.
  std::string strategy_plugin = {};
  stream_options stream = {};
  choice_options choice = {};
  /// Nodes whose device the caller chooses, whatever the policy. With a strategy, each replica must have the device.
  std::vector<placement_pin> pins = {};
  /// A plan saved as JSON (`session::plan`, `troupe plan --json`), perhaps edited: placement and chunks are as it says,
  /// or loading fails with `errc::invalid_plan`. When one of the engine's devices is lost, the policy decides again.
  /// Empty for none.
  std::string plan_file = {};
  /// Whether the rewrite fuses; off for experiments and tests. Folding and clean-up always happen.
  bool fuse = true;
  /// Which float types the model computes in; its inputs and outputs keep theirs.
  troupe::precision precision = troupe::precision::fp32;
  /// Outputs wanted, in this order; empty means all, in the model's order. Work that only others need is left out.
  std::vector<std::string> outputs = {};
  /// Outputs of which only a part is wanted, and copied to the host. Where each index of an output is computed from the
  /// same index of values before it, and the part is at most half of them, only that part is computed:
  /// `{{"logits", 1, -1}}` for what follows a prompt. The session's outputs have the dims of these parts. Several parts
  /// of one output are taken in turn. Loading throws `errc::invalid_argument` where the model has no such output, or
  /// does not state its dims.
  std::vector<output_slice> output_slices = {};
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
  /// Inputs that are on a device, beside those given as host tensors. If the plan wants one elsewhere, it goes through
  /// the host first (`run_stats::fetched_bytes`).
  named_device_tensors device_inputs = {};
  /// Outputs to leave on the device that makes them: they are in `run_result::kept`, not in `outputs`.
  std::vector<std::string> keep = {};
  /// Longest time the run may take; then it ends with `errc::timeout`. Zero, as well as more than a hundred years: no
  /// limit.
  std::chrono::milliseconds timeout{0};
  /// Ends the run with `errc::cancelled` when a stop is requested.
  std::stop_token cancel = {};
  /// Whether `run_result::trace` is wanted: every node's time is taken. Such a run is not cut.
  bool trace = false;
  /// Of what waits in a session's queue (`session::submit`), higher ones go first; none waits for ever.
  int priority = 0;
};

} // namespace troupe
