#include "cli/keep.hpp"

#include "base/elapsed.hpp"
#include "base/quantile.hpp"
#include "measure/measure_nodes.hpp"

#include <algorithm>
#include <iostream>

namespace troupe::cli {
namespace {

/// If the runs that were asked for take less time than this, more follow, up to `most_runs`: a few short runs say
/// little.
constexpr double least_measured_ms = 1000;
constexpr int most_runs = 200;

/// Returns what the nodes took on some devices together.
measured_nodes measure(const session& model, const named_tensors& inputs, const model_options& args,
                       const std::vector<std::string>& devices, int runs, const interrupts& stop) {
  progress line("measuring " + devices.front(), args.shows_progress());
  warm_up(model, inputs, 1, stop.token());
  std::vector<run_stats> untraced;
  std::vector<run_result> traced;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < runs || (i < most_runs && milliseconds_since(begin) < least_measured_ms); ++i) {
    line.show(std::min(i, runs), runs, "runs");
    untraced.push_back(model.run(inputs, {.cancel = stop.token()}).stats);
    traced.push_back(model.run(inputs, {.cancel = stop.token(), .trace = true}));
  }
  const bound_plan_ptr bound = bound_plan_of(model, inputs);
  if (std::any_of(traced.begin(), traced.end(), [&](const run_result& r) { return r.trace->source != bound->source; }))
    fail(errc::device_failed, "a device was lost while the model was profiled");
  measured_nodes all;
  for (const std::string& device : devices) {
    std::vector<traced_run> of_device;
    std::vector<double> busy;
    of_device.reserve(traced.size());
    busy.reserve(untraced.size());
    for (const run_result& r : traced)
      of_device.push_back({*r.trace, busy_seconds(r.stats, device)});
    for (const run_stats& run : untraced)
      busy.push_back(busy_seconds(run, device));
    all = merge(std::move(all),
                measure_nodes({of_device, dims_of_runs(*bound, args.dim_values()), median(busy)}, device));
  }
  return all;
}

/// Measures the model placed by a policy on `opened` and nothing else, whose instances are called `devices`.
measured_nodes measure_placed(const model_options& args, engine_options engine_of, placement_policy policy,
                              const std::string& opened, const std::vector<std::string>& devices, int runs,
                              const interrupts& stop) {
  engine_of.devices = {opened};
  std::erase_if(engine_of.memory, [&](const auto& limit) { return limit.first != devices.front(); });
  session_options options = args.session();
  options.policy = policy;
  options.policy_plugin.clear();
  options.pins.clear();
  options.plan_file.clear();
  engine made(engine_of);
  const session model = open_model(made, args, options);
  return measure(model, complete_inputs(model.inputs(), given_inputs(model, args), args.dim_values(), args.seed), args,
                 devices, runs, stop);
}

/// Measures the model on a device alone, and cut between two instances of it wherever it can be: layouts are changed
/// there that nothing changes where one device has all. Of what both have, the first counts.
measured_nodes measure_device(const model_options& args, const engine_options& engine_of, const std::string& device,
                              int runs, const interrupts& stop) {
  constexpr int cut_runs = 3;
  measured_nodes alone = measure_placed(args, engine_of, placement_policy::single, device, {device}, runs, stop);
  measured_nodes cut;
  try {
    cut = measure_placed(args, engine_of, placement_policy::round_robin, device + "*2", {device, device + "#1"},
                         std::min(runs, cut_runs), stop);
  } catch (const error& e) {
    if (e.code() != errc::unsupported && e.code() != errc::out_of_memory && e.code() != errc::cancelled)
      throw;
  }
  return merge(std::move(cut), std::move(alone));
}

} // namespace

std::vector<kept_device> measure_model(const model_options& args, const std::filesystem::path& profiles, int runs,
                                       const interrupts& stop) {
  engine_options options = args.engine();
  options.profile_file = profiles.string();
  std::vector<kept_device> all;
  const bool whole = measure_each(different_devices(device_infos(engine(options))), [&](const device_info& device) {
    measured_nodes nodes = measure_device(args, options, device.name, runs, stop);
    if (!nodes.empty())
      all.push_back({device.name, {key_of(device), {}, std::move(nodes)}});
  });
  if (whole && all.empty())
    fail(errc::unsupported, "no device runs a node of the model; name others with --devices");
  return all;
}

bool measure_each(std::span<const device_info> devices, const std::function<void(const device_info&)>& measure) {
  for (const device_info& device : devices)
    try {
      measure(device);
    } catch (const error& e) {
      if (e.code() == errc::cancelled)
        return false;
      if (e.code() != errc::unsupported && e.code() != errc::out_of_memory)
        throw;
      std::cerr << device.name << " is left out: " << e.what() << '\n';
    }
  return true;
}

} // namespace troupe::cli
