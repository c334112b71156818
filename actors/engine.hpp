// START HERE: the C++ facade of troupe.
//
//   troupe::engine engine;                                  // all devices of this machine
//   auto session = engine.load("resnet50.onnx");            // parse, rewrite; planned at the first run
//   auto result = session.run({{"input", image}});          // host tensors in, host tensors out
//   result.outputs.at("logits").values<float>();
//
// Thread-safety: `engine` and `session` may be used from several threads at once; concurrent runs of one session are in
// flight side by side on separate arena slots. Errors are `troupe::error` (base/error.hpp). No actor type appears here.
#pragma once

#include "device/device.hpp"
#include "plan/ready_set.hpp"
#include "rewrite/rewrite.hpp"
#include "trace/run_trace.hpp"

#include <chrono>
#include <future>
#include <stop_token>

namespace troupe {

namespace actors {
struct model;
}

/// What an engine is made of.
struct engine_options {
  /// Device names: "cpu", "vulkan:0" (a GPU), "null"; "cpu*2" opens two on one physical device; "all" is every GPU and the
  /// CPU. GPUs without the CPU get it as a fallback for nodes that they cannot run.
  std::vector<std::string> devices = {"all"};
  /// How chunks learn that their predecessors on the same device are done.
  completion_mode completion = completion_mode::device;
  /// Worker threads of the actor system.
  unsigned scheduler_threads = 2;
  /// A device that has work and shows no progress for this long counts as lost and is abandoned; its runs are done again on
  /// the other devices. Must exceed the longest chunk.
  std::chrono::milliseconds device_timeout = std::chrono::minutes(10);
  /// Bytes that plans may use, by device name, where that is less than the device has.
  std::map<std::string, int64_t> memory;
  /// What `troupe profile --calibrate` measured; empty: the file in the user's cache folder. One that cannot be used is ignored,
  /// see `engine::profile_problem`.
  std::string profile_file;
  /// Runs GPUs under Vulkan's validation layer with synchronization validation; see `engine::gpu_messages`. For tests.
  bool gpu_validation = false;
  /// Devices that the caller makes, opened behind the named ones; their `info().name` must be unique. For tests.
  std::vector<device_factory> custom_devices;
};

/// How a model is prepared.
struct session_options {
  placement_policy policy = placement_policy::single;
  /// Nodes whose device the caller chooses, whatever the policy.
  std::vector<placement_pin> pins;
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
  /// Longest time the run may take, zero for no limit; then the run ends with `errc::timeout`.
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
  /// Devices lost during the run; their work was done again on the others.
  std::vector<std::string> lost_devices;
  std::vector<std::pair<std::string, double>> busy_ms; // by device name
};

using named_tensors = std::map<std::string, tensor>;

struct run_result {
  named_tensors outputs;
  run_stats stats;
  run_trace trace; // empty unless it was asked for
};

/// Counters of a session.
struct session_stats {
  uint64_t runs = 0;
  uint64_t plan_hits = 0, plan_misses = 0, plan_evictions = 0; // of bound plans
  /// Of arena layouts, which plan misses look for: bindings with new dims share one where they are in the same bucket.
  uint64_t layout_hits = 0, layout_misses = 0, layout_evictions = 0;
  double load_ms = 0;    // file → graph
  double rewrite_ms = 0; // of all rewrites
  double plan_ms = 0;    // of all plans and binds, installs included
};

/// A model, ready to run. A handle: copies share the model.
class session {
public:
  /// Returns the model's inputs and outputs, in the file's order.
  const std::vector<value_info>& inputs() const;
  const std::vector<value_info>& outputs() const;

  /// Runs the model. Throws `errc::invalid_input` for inputs that are missing, extra, or of wrong type or shape;
  /// `errc::device_failed`, `device_lost`, `timeout` as the run ends.
  run_result run(named_tensors inputs, const run_options& options = {}) const;

  /// Starts a run; the future throws what `run` throws.
  std::future<run_result> run_async(named_tensors inputs, const run_options& options = {}) const;

  /// Returns the plan that a run with these inputs would use, making it where it is not cached.
  std::shared_ptr<const plan> plan_for(const named_tensors& inputs) const;

  /// Returns that plan's first segment bound to these inputs' dims: concrete shapes and memory.
  bound_plan_ptr bind_for(const named_tensors& inputs) const;

  session_stats stats() const;

private:
  friend class engine;
  struct state;
  explicit session(std::shared_ptr<state> s);
  std::shared_ptr<state> state_;
};

/// All the devices of one process (see the top of this file).
class engine {
public:
  explicit engine(const engine_options& options = {});
  ~engine();
  engine(engine&&) noexcept;
  engine& operator=(engine&&) noexcept;

  /// Returns the open devices, in the order plans number them.
  std::vector<device_info> devices() const;

  /// Returns counters by device, in the same order.
  std::vector<device_stats> stats() const;

  /// Returns a tensor to fill, its bytes uninitialised, in memory that GPUs read without a copy: make a run's large inputs with
  /// it. The bytes are used again when the last handle dies. Throws `errc::out_of_memory`.
  tensor allocate(dtype type, shape dims);

  /// Returns why "all" means no GPU on this machine, in words for a person; empty where it means one.
  std::string no_gpu_because() const;

  /// Returns why the file of measured device profiles is not used; empty where it is, or where there is none.
  std::string profile_problem() const;

  /// Returns what the Vulkan validation layer has said so far.
  std::vector<std::string> gpu_messages() const;

  /// Loads an ONNX file. Throws `errc::io`, `errc::invalid_model`, `errc::unsupported`.
  session load(const std::string& path, const session_options& options = {});

  /// Takes a graph built in code, through the same checks as a file.
  session load(graph model, const session_options& options = {});

private:
  session open(std::shared_ptr<const actors::model> model);

  struct state;
  std::shared_ptr<state> state_;
};

} // namespace troupe
