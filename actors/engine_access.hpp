// What this project's own command, tests and benchmarks get from engines and sessions beyond the public headers: hooks,
// plans, and devices with all that planning knows about them. Not installed.
#pragma once

#include "actors/network.hpp"
#include "cost/profile_file.hpp"
#include "device/device.hpp"
#include "launch/kernel_choices.hpp"
#include "plan/bind/bound_plan.hpp"
#include "remote/host_client.hpp"
#include "troupe/engine.hpp"

#include <span>

namespace troupe {

/// What an engine is made of besides its options.
struct engine_hooks {
  /// Runs GPUs under Vulkan's validation layer with synchronization validation; see `gpu_messages`.
  bool gpu_validation = false;
  /// Devices that the caller makes, opened after the named ones; their `info().name` must be unique.
  std::vector<device_factory> custom_devices;
  /// Makes the way to other hosts.
  actors::network_maker make_network = actors::make_tcp_network;
};

/// Opens an engine's devices. Throws what the constructor of `engine` throws.
engine make_engine(const engine_options& options, const engine_hooks& hooks);

/// Returns what the Vulkan validation layer has said so far.
std::vector<std::string> gpu_messages(const engine& e);

/// Returns the open devices as plans see them, in the order of `engine::devices`.
std::vector<device_info> device_infos(const engine& e);

/// Returns what a GPU of this process chooses its kernels by, from the next plan on that is installed there; null for
/// other devices.
std::shared_ptr<kernel_choices> kernels_of(const engine& e, const std::string& device);

/// Returns which pairs of GPUs of this process exchange values over the host's thread alone, and why, in words for a
/// person.
std::vector<std::string> why_gpus_are_apart(const engine& e);

/// If `words` are those that the library starts the command with to try whether GPUs can wait for each other's work
/// (vulkan/peer_proof.hpp): tries it, prints what it finds and returns true.
bool tries_gpu_peers(std::span<const std::string> words);

/// Opens further devices, which sessions use from their next runs on. One that was lost may come back under its name.
void add_devices(const engine& e, const std::vector<device_factory>& makes);
/// Takes the devices for which `which` holds as lost, as if the link to their host were gone.
void lose_devices(const engine& e, const std::function<bool(const device_info&)>& which, const std::string& why);

/// Lets the devices for which `which` holds leave, as if their host had said so; sessions hold `need` while they need
/// them.
void let_leave(const engine& e, const std::function<bool(const device_info&)>& which, const std::string& why,
               const std::shared_ptr<const void>& need);

/// Returns what another host has in hand for an engine's sessions; nothing if it is lost.
remote::host_activity activity_of(const engine& e, const std::string& host);

/// Measures the link to one of `engine::hosts` at length, for `store_profiles`. Throws `errc::device_lost`,
/// `errc::timeout`.
measured_link calibrate_link(const engine& e, const std::string& host);

/// Returns the plan that a run with these inputs would use, making it where it is not cached.
std::shared_ptr<const plan> plan_of(const session& s, const named_tensors& inputs);

/// Returns that plan's first segment bound to these inputs' dims: concrete shapes and memory.
bound_plan_ptr bound_plan_of(const session& s, const named_tensors& inputs);

} // namespace troupe
