// Measures what a model's nodes take on each device, for the cost model.
#pragma once

#include "cli/command.hpp"
#include "cli/progress.hpp"
#include "cost/profile_file.hpp"

#include <functional>
#include <span>

namespace troupe::cli {

/// What was measured on one device.
struct kept_device {
  std::string name;
  measured_profile measured;
};

/// Runs the model of `args` on each different device of its engine alone, `runs` times untraced and as often traced,
/// then a few times on two instances of it in turns, which need changes of layout that one has not; what a GPU cannot
/// run is then the CPU's. `profiles` is the file that says how fast the devices are. Devices that cannot run the model
/// are left out, with a line on stderr; if all are, throws `errc::unsupported`. After `stop` it returns what it has.
std::vector<kept_device> measure_model(const model_options& args, const std::filesystem::path& profiles, int runs,
                                       const interrupts& stop);

/// Calls `measure` with one of `devices` after the other. Those that cannot run the model (`errc::unsupported`,
/// `errc::out_of_memory`) are left out, with a line on stderr. Returns whether all had their turn: false once one is
/// cancelled.
bool measure_each(std::span<const device_info> devices, const std::function<void(const device_info&)>& measure);

} // namespace troupe::cli
