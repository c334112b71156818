// The devices of an engine: opens them, each in an actor of its own, and closes them. Devices of other hosts join and
// are lost meanwhile.
//
// The only place that makes concrete devices of this process: `factory_of` has a case for each kind. Thread-safe once
// `open_devices` has returned, except `open`, which one thread calls at a time.
#pragma once

#include "actors/device_actor.hpp"
#include "actors/device_names.hpp"
#include "actors/engine_access.hpp"
#include "actors/gpu_peers.hpp"
#include "cost/profile_file.hpp"
#include "device/host_block.hpp"

namespace troupe::vulkan {
class instance;
}

namespace troupe::actors {

class host {
public:
  /// Where a device's actor runs.
  enum class threading : uint8_t {
    own_thread, // the device blocks its thread
    shared,     // the device returns at once
  };

  explicit host(caf::actor_system& system) : system_(system) {}
  ~host() { close(); }
  host(const host&) = delete;
  host& operator=(const host&) = delete;

  /// Opens this machine's devices that `names` say. Throws `errc::invalid_argument`, and what opening a device throws;
  /// those that are open then stay open until `close`.
  void open_devices(const engine_options& options, const std::vector<std::string>& names, const engine_hooks& hooks);
  /// Throws `errc::invalid_argument` unless there is a device, and each that a memory limit or `names` says.
  void check_complete(const std::vector<std::string>& names) const;

  device_list devices() const;
  /// Whether some device answers so fast that callers should not sleep meanwhile (awake.hpp).
  bool answers_fast() const { return answers_fast_; }

  /// Opens one more device, with its limit, ledger and profile. Throws what opening it throws, and
  /// `errc::invalid_argument` if a living device, or one of `beside`, has its name. No session has it before `add`.
  device_handle open(device_factory make, threading where, const std::vector<device_handle>& beside = {});
  void add(const std::vector<device_handle>& opened);
  /// Takes the living devices for which `which` holds as lost and ends their actors: sessions plan again at once.
  void lose(const std::function<bool(const device_info&)>& which, const std::string& why);

  /// The memory through which tensors pass between this process's devices without a copy.
  const std::shared_ptr<host_block_pool>& blocks() const { return blocks_; }

  /// Returns why "all" means no GPU here, or not all of them, in words for a person; empty if it means all, or the
  /// caller did not ask.
  const std::string& no_gpu_because() const { return no_gpu_because_; }

  /// Returns which pairs of GPUs are not peers, and why.
  const std::vector<std::string>& why_gpus_are_apart() const { return why_gpus_are_apart_; }

  /// Returns why measured device profiles are not used, in words for a person; empty if they are, or there are none.
  const std::string& profile_problem() const { return profile_problem_; }

  /// Returns what is kept of the link to the worker at this address, HOST:PORT; nothing if it was never measured at
  /// length.
  std::optional<measured_link> kept_link(const std::string& address) const;

  /// Returns what the Vulkan validation layer has said (engine_hooks::gpu_validation).
  std::vector<std::string> gpu_messages() const;

  /// Asks all devices for their counters. A device that is lost, or too busy to answer soon, has zeros.
  std::vector<device_stats> stats() const;

  /// Returns a host copy of a value, or a value on a device; see `engine`. A device that is silent for `timeout` counts
  /// as lost; zero for no limit.
  tensor fetch(const device_tensor& value, std::chrono::milliseconds timeout) const;
  device_tensor put(const tensor& value, const std::string& device, std::chrono::milliseconds timeout) const;

  /// Returns whether some device is lost or did not open in time: its actor may never end.
  bool any_lost() const;
  /// Tells all actors to end; does not wait.
  void close();

private:
  /// Makes `all` the list of devices, and lets go of the actors of those that are lost. Called with the mutex held.
  void set_devices(std::vector<device_handle> all);
  void list_gpus(bool validation);
  std::string explain_gpus() const;
  /// Returns the living device that a value is on, or that is called so; throws `errc::invalid_argument` if there is
  /// none, `errc::device_lost`, saying that it was to `purpose`.
  device_handle living(const std::string& name, std::optional<uint64_t> incarnation, std::string_view purpose) const;
  /// Opens a device of this process, with what is known of its speeds and kernels.
  device_handle open_requested(const device_request& request, const engine_options& options, const gpu_ties& ties);
  device_factory factory_of(const device_request& request, const engine_options& options,
                            const std::shared_ptr<kernel_choices>& kernels, const gpu_ties& ties) const;
  /// Returns choices of kernels for a GPU, none so far; null for other devices.
  std::shared_ptr<kernel_choices> kernels_of(const device_request& request) const;

  caf::actor_system& system_;
  const std::shared_ptr<host_block_pool> blocks_ = std::make_shared<host_block_pool>();
  std::shared_ptr<const vulkan::instance> gpus_;
  size_t hardware_gpus_ = 0;
  bool opens_gpus_ = false;
  std::string no_gpu_because_;
  std::vector<std::string> why_gpus_are_apart_;
  std::string profile_problem_;
  std::map<std::string, int64_t> limits_; // engine_options::memory
  int cpu_threads_ = 0;                   // of each CPU device; 0: as many as it likes
  kept_profiles profiles_;
  std::atomic<bool> answers_fast_{false};
  std::atomic<bool> open_hangs_{false}; // a device did not open in time: its actor may never end
  mutable std::mutex mutex_;            // guards devices_
  device_list devices_;
};

} // namespace troupe::actors
