#include "cli/keep.hpp"

#include "base/elapsed.hpp"
#include "base/quantile.hpp"
#include "measure/measure_nodes.hpp"

#include <algorithm>
#include <iostream>

namespace troupe::cli {
namespace {

/// Runs go on for so long, up to so many, if those that were asked for take less: few short ones say little.
constexpr double least_measured_ms = 1000;
constexpr int most_runs = 200;

measured_nodes measure(const session& model, const named_tensors& inputs, const model_options& args,
                       const std::string& device, int runs, const interrupts& stop) {
  progress line("measuring " + device, args.shows_progress());
  warm_up(model, inputs, 1, stop.token());
  std::vector<double> busy;
  std::vector<traced_run> traced;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < runs || (i < most_runs && milliseconds_since(begin) < least_measured_ms); ++i) {
    line.show(std::min(i, runs), runs, "runs");
    busy.push_back(busy_seconds(model.run(inputs, {.cancel = stop.token()}).stats, device));
    const run_result result = model.run(inputs, {.cancel = stop.token(), .trace = true});
    const double busy_s = busy_seconds(result.stats, device);
    traced.push_back({*result.trace, busy_s});
  }
  const bound_plan_ptr bound = bound_plan_of(model, inputs);
  if (std::any_of(traced.begin(), traced.end(), [&](const traced_run& t) { return t.trace.source != bound->source; }))
    fail(errc::device_failed, "a device was lost while the model was profiled");
  return measure_nodes({traced, dims_of_runs(*bound, args.dim_values()), median(std::move(busy))}, device);
}

measured_nodes measure_alone(const model_options& args, engine_options alone, const std::string& device, int runs,
                             const interrupts& stop) {
  alone.devices = {device};
  std::erase_if(alone.memory, [&](const auto& limit) { return limit.first != device; });
  session_options options = args.session();
  options.policy = placement_policy::single;
  options.policy_plugin.clear();
  options.pins.clear();
  options.plan_file.clear();
  engine devices(alone);
  const session model = open_model(devices, args, options);
  return measure(model, complete_inputs(model.inputs(), given_inputs(model, args), args.dim_values(), args.seed), args,
                 device, runs, stop);
}

} // namespace

std::vector<kept_device> measure_model(const model_options& args, const std::filesystem::path& profiles, int runs,
                                       const interrupts& stop) {
  engine_options options = args.engine();
  options.profile_file = profiles.string();
  std::vector<kept_device> all;
  for (const device_info& device : different_devices(device_infos(engine(options)))) {
    try {
      measured_nodes nodes = measure_alone(args, options, device.name, runs, stop);
      if (!nodes.empty())
        all.push_back({device.name, {key_of(device), {}, std::move(nodes)}});
    } catch (const error& e) {
      if (e.code() == errc::cancelled)
        return all;
      if (e.code() != errc::unsupported && e.code() != errc::out_of_memory)
        throw;
      std::cerr << device.name << " is left out: " << e.what() << '\n';
    }
  }
  if (all.empty())
    fail(errc::unsupported, "none of the devices runs a node of the model; name others with --devices");
  return all;
}

} // namespace troupe::cli
