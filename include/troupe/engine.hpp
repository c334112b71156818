// All the devices of one process, and models on them.
//
//   troupe::engine engine;                                  // all devices of this machine
//   auto session = engine.load("resnet50.onnx");            // parse, rewrite; planned at the first run
//   auto result = session.run({{"input", image}});          // host tensors in, host tensors out
//   result.outputs.at("logits").values<float>();
#pragma once

#include "troupe/built_model.hpp"
#include "troupe/session.hpp"

namespace troupe {

struct engine_hooks;
struct model;

/// See the top of this file. Thread-safe. Sessions may outlive it: their runs then end with `errc::cancelled`.
class TROUPE_API engine {
public:
  /// Opens the devices. Throws `errc::invalid_argument` for options that cannot be, and what opening a device throws.
  explicit engine(const engine_options& options = {});
  ~engine();
  engine(engine&&) noexcept;
  engine& operator=(engine&&) noexcept;

  /// Returns the open devices, in the order plans number them.
  std::vector<device_summary> devices() const;

  /// Returns counters by device, in the same order.
  std::vector<device_stats> stats() const;

  /// Returns a tensor to fill, its bytes uninitialised, in memory that GPUs read without a copy: make a run's large
  /// inputs with it. The bytes are used again when the last handle dies. Throws `errc::out_of_memory`.
  tensor allocate(dtype type, shape dims);

  /// Returns a host copy of a value that is on a device; where it is in the host's memory, nothing is copied. Throws
  /// `errc::device_lost` where the device is gone, `errc::invalid_argument` where it is not one of this engine's.
  tensor fetch(const device_tensor& value) const;

  /// Returns a copy of a tensor in the memory of the device called `device`, to be an input of many runs: the tensor's
  /// own bytes may change afterwards. After much queued work it takes as long as that. Throws `errc::invalid_argument`,
  /// `errc::out_of_memory`, `errc::device_lost`.
  device_tensor put(const tensor& value, const std::string& device) const;

  /// Connects to a worker, as `engine_options::hosts` does: its devices join, for sessions that are open too. If its
  /// link ends, they are lost, and runs on them are done again on the devices left; if it can be reached again, its
  /// devices join again. Throws `errc::invalid_argument` for a malformed or taken name or for credentials that cannot
  /// be used, `errc::io` and `errc::timeout`, saying why, if it cannot be reached or refuses, and `errc::device_lost`
  /// if it is lost while its devices join.
  void add_host(const std::string& host);

  /// Returns what is known of the other hosts.
  std::vector<host_summary> hosts() const;

  /// Returns the names of the devices that have been lost so far: nothing runs there any more. A new engine may find
  /// them well.
  std::vector<std::string> lost_devices() const;

  /// Returns why "all" means no GPU on this machine, or not all of them, in words for a person; empty if it means all.
  std::string no_gpu_because() const;

  /// Returns why the file of measured device profiles is not used; empty if it is, or if there is none.
  std::string profile_problem() const;

  /// Loads an ONNX file. Throws `errc::io`, `errc::invalid_model`, `errc::unsupported`, `errc::invalid_plan`.
  session load(const std::string& path, const session_options& options = {});

  /// Takes a model built in code, through the same checks as a file.
  session load(const built_model& model, const session_options& options = {});

private:
  friend struct engine_access;
  engine(const engine_options& options, const engine_hooks& hooks);
  session open(std::shared_ptr<const model> loaded, const session_options& asked);

  struct state;
  std::shared_ptr<state> state_;
};

} // namespace troupe
