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
#include "run/options.hpp"

#include <future>

namespace troupe {

struct model;

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
  /// the other devices. Must exceed what a GPU takes for its longest chunk and to load a model's weights; a CPU is never silent,
  /// however long it computes. Zero, as well as more than a hundred years: devices are waited for without end, and for ten minutes when
  /// the engine closes.
  std::chrono::milliseconds device_timeout = std::chrono::minutes(10);
  /// Bytes that plans may use, by device name, where that is less than the device has.
  std::map<std::string, int64_t> memory;
  /// What `troupe profile` measured and kept; empty: the file in the user's cache folder. One that cannot be used is ignored, see
  /// `engine::profile_problem`.
  std::string profile_file;
  /// Runs GPUs under Vulkan's validation layer with synchronization validation; see `engine::gpu_messages`. For tests.
  bool gpu_validation = false;
  /// Devices that the caller makes, opened behind the named ones; their `info().name` must be unique. For tests.
  std::vector<device_factory> custom_devices;
};

class bound_session;

/// A model, ready to run. A handle: copies share the model.
class session {
public:
  /// Returns the model's inputs and outputs, in the file's order.
  const std::vector<value_info>& inputs() const;
  const std::vector<value_info>& outputs() const;

  /// Runs the model. Throws `errc::invalid_input` for inputs that are missing, extra, or of wrong type or shape,
  /// `errc::invalid_argument` for options that cannot be;
  /// `errc::device_failed`, `device_lost`, `timeout` as the run ends. `errc::device_lost` too where an input lies on a device
  /// that is gone.
  run_result run(named_tensors inputs, const run_options& options = {}) const;

  /// Starts a run; the future throws what `run` throws. The inputs' bytes must not change before it is ready.
  std::future<run_result> run_async(named_tensors inputs, const run_options& options = {}) const;

  /// Makes outputs the inputs of the next run, and leaves them on their device between. Throws `errc::invalid_argument` where a
  /// name does not exist or is bound twice, or where type or shape of a pair cannot fit.
  bound_session bind(std::vector<output_binding> pairs) const;

  /// Returns the plan that a run with these inputs would use, making it where it is not cached.
  std::shared_ptr<const plan> plan_for(const named_tensors& inputs) const;

  /// Returns that plan's first segment bound to these inputs' dims: concrete shapes and memory.
  bound_plan_ptr bind_for(const named_tensors& inputs) const;

  session_stats stats() const;

private:
  friend class engine;
  friend class bound_session;
  struct state;
  explicit session(std::shared_ptr<state> s);
  tensor fetch(const device_tensor& value) const;
  std::shared_ptr<state> state_;
};

/// A session whose bound outputs feed its next run, e.g. a decoder with its past keys and values. Its runs go one after the
/// other, whichever threads call; several bound sessions of one session run side by side. A run that fails leaves the state as it
/// was before. Copies share the state.
class bound_session {
public:
  /// Runs the model; the result's outputs are those that are not bound. The first run takes the bound inputs' initial values
  /// among `inputs`; a later one that names a bound input starts it over. Throws what `session::run` throws; where the state was on
  /// a device that is lost, `errc::device_lost` until all that was there is given anew.
  run_result run(named_tensors inputs, run_options options = {});

  /// Returns a host copy of what a bound output is now. Throws `errc::invalid_argument` where it is not bound or no run has ended
  /// well, `errc::device_lost`.
  tensor fetch(const std::string& output) const;

private:
  friend class session;
  struct state;
  bound_session(session model, std::vector<output_binding> pairs);
  std::shared_ptr<state> state_;
};

/// All the devices of one process (see the top of this file).
class engine {
public:
  /// Opens the devices. Throws `errc::invalid_argument` for options that cannot be, and what opening a device throws.
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

  /// Returns a host copy of a value that lies on a device; where it is in the host's memory, nothing is copied. Throws
  /// `errc::device_lost` where the device is gone, `errc::invalid_argument` where it is not one of this engine's.
  tensor fetch(const device_tensor& value) const;

  /// Returns a copy of a tensor in the memory of the device called `device`, to be an input of many runs: the tensor's own bytes may
  /// change afterwards. Behind much queued work it takes as long as that. Throws
  /// `errc::invalid_argument`, `errc::out_of_memory`, `errc::device_lost`.
  device_tensor put(const tensor& value, const std::string& device) const;

  /// Returns the names of the devices that have been lost so far: nothing runs there any more. A new engine may find them well.
  std::vector<std::string> lost_devices() const;

  /// Returns why "all" means no GPU on this machine, in words for a person; empty where it means one.
  std::string no_gpu_because() const;

  /// Returns why the file of measured device profiles is not used; empty where it is, or where there is none.
  std::string profile_problem() const;

  /// Returns what the Vulkan validation layer has said so far.
  std::vector<std::string> gpu_messages() const;

  /// Loads an ONNX file. Throws `errc::io`, `errc::invalid_model`, `errc::unsupported`, `errc::invalid_plan`.
  session load(const std::string& path, const session_options& options = {});

  /// Takes a graph built in code, through the same checks as a file.
  session load(graph model, const session_options& options = {});

private:
  session open(std::shared_ptr<const model> loaded);

  struct state;
  std::shared_ptr<state> state_;
};

} // namespace troupe
