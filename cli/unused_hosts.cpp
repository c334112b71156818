#include "cli/unused_hosts.hpp"

#include "measure/measure_nodes.hpp"
#include "plan/estimate/predict.hpp"
#include "plan/place/policies.hpp"
#include "plan/show/idle_devices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace troupe::cli {
namespace {

/// A plan with everything on one device of another host.
struct elsewhere {
  std::string device;
  double total_s = 0, network_s = 0; // predicted
};

double predicted_s(const bound_plan& bound, const plan& p, const model_options& args) {
  return predict(p, dims_of_runs(bound, args.dim_values())).makespan_s;
}

/// The same plan, if nothing took time on its way between hosts.
plan without_network(plan p) {
  for (device_info& d : p.devices) {
    d.profile.chunk_s = std::max(d.profile.chunk_s - d.network_in.latency_s - d.network_out.latency_s, 0.0);
    d.network_in = d.network_out = {};
  }
  return p;
}

/// Throws what planning throws if the device cannot run the model.
elsewhere predict_on(engine& devices, const std::string& device, const model_options& args,
                     const named_tensors& inputs) {
  session_options how = args.session();
  how.pins = {{"*", device}};
  const bound_plan_ptr bound = bound_plan_of(open_model(devices, args, how), inputs);
  const double total_s = predicted_s(*bound, *bound->source, args);
  return {device, total_s, total_s - predicted_s(*bound, without_network(*bound->source), args)};
}

std::string why_unused(const host_summary& host, engine& devices, const model_options& args,
                       const named_tensors& inputs, double taken_s) {
  std::optional<elsewhere> best;
  std::string problem = "no device of it has joined";
  for (const device_info& d : device_infos(devices)) {
    if (d.host != host.name)
      continue;
    try {
      const elsewhere there = predict_on(devices, d.name, args, inputs);
      if (!best || there.total_s < best->total_s)
        best = there;
    } catch (const error& e) {
      problem = e.what();
    }
  }
  if (!best)
    return fmt::format("{} is not used: {}", host.name, problem);
  const bool slower = best->total_s >= taken_s;
  return fmt::format(
      "{} is not used{}: all on {} is predicted to take {:.3g} ms, {:.3g} ms of it for the network, this "
      "plan {:.3g} ms",
      host.name, slower ? "" : fmt::format(", `--pin '*={}'` would be faster", best->device), best->device,
      best->total_s * 1e3, best->network_s * 1e3, taken_s * 1e3);
}

} // namespace

std::vector<std::string> why_unused(engine& devices, const model_options& args, const named_tensors& inputs,
                                    const bound_plan& bound) {
  const bool by_time = row_of(args.session().policy).by_finish;
  if (!by_time || !args.pins.empty() || !args.plan_file.empty())
    return {};
  std::map<std::string, int> used;
  count_nodes(*bound.source, used);
  const double taken_s = predicted_s(bound, *bound.source, args);
  std::vector<std::string> lines;
  for (const host_summary& h : devices.hosts())
    if (std::none_of(used.begin(), used.end(), [&](const auto& u) { return u.first.starts_with(h.name + "/"); }))
      lines.push_back(why_unused(h, devices, args, inputs, taken_s));
  return lines;
}

} // namespace troupe::cli
