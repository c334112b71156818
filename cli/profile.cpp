// troupe profile: measured times of a model's nodes beside the predicted ones; with --keep, these times are kept for
// later predictions; with --calibrate, the measurement of the devices that predictions rest on.
#include "base/printable.hpp"
#include "base/quantile.hpp"
#include "cli/calibrate.hpp"
#include "cli/keep.hpp"
#include "cli/progress.hpp"
#include "cli/tune.hpp"
#include "measure/measure_nodes.hpp"
#include "measure/operator_table.hpp"
#include "monitoring/bottlenecks.hpp"
#include "plan/estimate/predict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

namespace troupe::cli {
namespace {

struct profile_arguments : model_options {
  bool calibrate = false;
  bool keep = false;
  bool tune = false;
  double budget_s = 60;
  std::filesystem::path file; // empty: the user's
  int runs = 5;

  std::filesystem::path profiles() const { return file.empty() ? profile_path() : file; }
};

// -- calibration

nlohmann::json values_json(const measured_profile& m) {
  nlohmann::json j = nlohmann::json::object();
  for (const auto& [name, value] : m.values)
    j[name] = value;
  return j;
}

/// What a figure of a profile is, in words; a new one without any shows its name.
std::string_view title_of(const std::string& name) {
  static constexpr auto titles = std::to_array<std::pair<std::string_view, std::string_view>>({
      {"float64", "float64 products"},
      {"float32", "float32 products"},
      {"float16", "float16 products"},
      {"bfloat16", "bfloat16 products"},
      {"int8", "int8 products"},
      {"memory_bytes_per_s", "memory"},
      {"launch_s", "one kernel"},
      {"barrier_s", "one barrier"},
      {"chunk_s", "one run, computing aside"},
      {"submit_s", "one chunk more"},
      {"wake_s", "a chunk after a pause"},
      {"up.bytes_per_s", "host to device"},
      {"up.latency_s", "one value to the device"},
      {"down.bytes_per_s", "device to host"},
      {"down.latency_s", "one value to the host"},
      {"input_bytes_per_s", "a caller's inputs"},
  });
  const auto row = std::find_if(titles.begin(), titles.end(), [&](const auto& t) { return t.first == name; });
  return row == titles.end() ? std::string_view(name) : row->second;
}

/// Returns e.g. "3.2 TFLOP/s", "48.1 GB/s", "1.8 µs".
std::string for_people(const std::string& name, double value) {
  if (name.ends_with("_s") && !name.ends_with("bytes_per_s"))
    return fmt::format("{:.2f} µs", value * 1e6);
  const char* unit = name.ends_with("bytes_per_s") ? "B/s" : "FLOP/s";
  return value >= 1e12 ? fmt::format("{:.2f} T{}", value / 1e12, unit) : fmt::format("{:.2f} G{}", value / 1e9, unit);
}

measured_profile calibrate_device(engine& devices, size_t index, const profile_arguments& args) {
  progress line("calibrating " + devices.devices()[index].name, args.shows_progress());
  return calibrate(devices, index, [&](double done, double all) { line.show(done, all, "figures"); });
}

/// Measures the links to other hosts one after the other, and adds them to `out`.
std::vector<measured_link> calibrate_links(engine& devices, const profile_arguments& args, const interrupts& stop,
                                           nlohmann::json& out) {
  std::vector<measured_link> links;
  for (const host_summary& h : devices.hosts()) {
    if (stop.requested())
      break;
    const progress line("measuring the link to " + h.name, args.shows_progress());
    const measured_link& l = links.emplace_back(calibrate_link(devices, h.name));
    out.push_back({{"host", h.name},
                   {"address", l.address},
                   {"measured",
                    {{"round_trip_s", l.round_trip_s},
                     {"to_bytes_per_s", l.to_bytes_per_s},
                     {"from_bytes_per_s", l.from_bytes_per_s}}}});
  }
  return links;
}

void print_links(const std::vector<measured_link>& links) {
  for (const measured_link& l : links)
    fmt::print("link to {}\n  {:26} {:>16}\n  {:26} {:>16}\n  {:26} {:>16}\n", l.address, "round trip",
               for_people("round_trip_s", l.round_trip_s), "from here", for_people("bytes_per_s", l.to_bytes_per_s),
               "from there", for_people("bytes_per_s", l.from_bytes_per_s));
}

/// Measures and keeps one device after the other, then the links to other hosts; after Ctrl-C those that were measured
/// are kept.
void calibrate_devices(const profile_arguments& args) {
  const interrupts stop;
  engine devices(args.engine());
  std::vector<measured_profile> all;
  nlohmann::json out = nlohmann::json::array();
  const std::vector<device_info> infos = device_infos(devices);
  for (size_t d = 0; d < infos.size(); ++d) {
    if (infos[d].kind == device_kind::null || infos[d].fallback || is_remote(infos[d]))
      continue; // other hosts say themselves how fast their devices are
    if (stop.requested())
      break;
    all.push_back(calibrate_device(devices, d, args));
    out.push_back({{"device", infos[d].name}, {"measured", values_json(all.back())}});
    if (args.json)
      continue;
    fmt::print("{} ({})\n", infos[d].name, infos[d].description);
    for (const auto& [name, value] : all.back().values)
      fmt::print("  {:26} {:>16}\n", title_of(name), for_people(name, value));
  }
  const std::vector<measured_link> links = calibrate_links(devices, args, stop, out);
  if (all.empty() && links.empty()) {
    stop.exit_if_requested();
    fail(errc::invalid_argument, "there is no device to measure; name some with --devices");
  }
  store_profiles(args.profiles(), all, links);
  if (args.json)
    write_json(out);
  else
    print_links(links);
  std::cerr << "written to " << printable(args.profiles().string()) << '\n';
  stop.exit_if_requested();
}

// -- a model

void print_table(const operator_table& table) {
  std::vector<operator_table::const_iterator> rows;
  rows.reserve(table.size());
  for (auto row = table.begin(); row != table.end(); ++row)
    rows.push_back(row);
  std::stable_sort(rows.begin(), rows.end(),
                   [](auto a, auto b) { return a->second.measured_ms > b->second.measured_ms; });
  fmt::print("{:12} {:28} {:>6} {:>12} {:>12}\n", "device", "operator", "nodes", "measured ms", "predicted");
  for (const auto& row : rows)
    fmt::print("{:12} {:28} {:6} {:12.3f} {:12.3f}\n", row->first.first, printable(row->first.second),
               row->second.nodes, row->second.measured_ms, row->second.predicted_ms);
}

nlohmann::json table_json(const operator_table& table) {
  nlohmann::json rows = nlohmann::json::array();
  for (const auto& [key, times] : table)
    rows.push_back({{"device", key.first},
                    {"operator", key.second},
                    {"nodes", times.nodes},
                    {"measured_ms", times.measured_ms},
                    {"predicted_ms", times.predicted_ms}});
  return rows;
}

/// What a model's runs took, in ms.
struct model_times {
  double measured = 0, predicted = 0;
  operator_table operators;
  std::vector<finding> bottlenecks; // of the traced run
};

model_times time_model(const profile_arguments& args, const interrupts& stop) {
  engine_options options = args.engine();
  options.profile_file = args.file.string();
  engine devices(options);
  const session model = open_model(devices, args);
  const named_tensors inputs = complete_inputs(model.inputs(), given_inputs(model, args), args.dim_values(), args.seed);
  progress line("profile", args.shows_progress());
  line.watch(loads_of(devices));
  warm_up(model, inputs, 1, stop.token());
  std::vector<double> wall;
  wall.reserve(static_cast<size_t>(args.runs));
  for (int i = 0; i < args.runs && (i == 0 || !stop.requested()); ++i) {
    line.show(i, args.runs, "runs");
    wall.push_back(model.run(inputs).stats.total_ms);
  }
  const auto typical = model.run(inputs, {.trace = true}).trace;
  const bound_plan_ptr bound = bound_plan_of(model, inputs);
  if (typical->source != bound->source)
    fail(errc::device_failed, "a device was lost while the model was profiled");
  const std::vector<shape> dims = dims_of_runs(*bound, args.dim_values());
  return {median(std::move(wall)), predict(*typical->source, dims).makespan_s * 1e3, table_of(*typical, dims),
          monitoring::find_bottlenecks(*typical, dims)};
}

nlohmann::json kept_json(const std::vector<kept_device>& kept) {
  nlohmann::json rows = nlohmann::json::array();
  for (const kept_device& k : kept) {
    nlohmann::json ratios = nlohmann::json::object();
    for (const auto& [op, sums] : k.measured.nodes.operators)
      ratios[op] = sums.ratio();
    rows.push_back({{"device", k.name}, {"nodes", k.measured.nodes.nodes.size()}, {"operators", std::move(ratios)}});
  }
  return rows;
}

std::vector<kept_device> keep_times(const profile_arguments& args, const interrupts& stop) {
  std::vector<kept_device> kept = measure_model(args, args.profiles(), args.runs, stop);
  if (kept.empty())
    stop.exit_if_requested();
  std::vector<measured_profile> all;
  all.reserve(kept.size());
  for (const kept_device& k : kept)
    all.push_back(k.measured);
  store_profiles(args.profiles(), all);
  return kept;
}

void print_kept(const std::vector<kept_device>& kept) {
  for (const kept_device& k : kept)
    fmt::print("kept of {}: the times of {} different nodes, {} operators\n", k.name, k.measured.nodes.nodes.size(),
               k.measured.nodes.operators.size());
}

/// Tunes the model's kernels and keeps the choices, for the engines that are opened from now on.
std::vector<tuned_device> tune_kernels(const profile_arguments& args, const interrupts& stop) {
  std::vector<tuned_device> tuned = tune_model(args, args.budget_s, stop);
  if (tuned.empty())
    stop.exit_if_requested();
  std::vector<measured_profile> all;
  all.reserve(tuned.size());
  for (const tuned_device& d : tuned)
    all.push_back({d.device, {}, {}, choices_of(d.calls, d.found)});
  store_profiles(args.profiles(), all);
  return tuned;
}

void profile_model(const profile_arguments& args) {
  const interrupts stop;
  const std::vector<tuned_device> tuned = args.tune ? tune_kernels(args, stop) : std::vector<tuned_device>{};
  if (!args.json)
    print_tuned(tuned);
  const std::vector<kept_device> kept = args.keep ? keep_times(args, stop) : std::vector<kept_device>{};
  nlohmann::json out{{"kept", kept_json(kept)}, {"tuned", tuned_json(tuned)}};
  if (!args.json)
    print_kept(kept);
  if (!stop.requested()) {
    const model_times times = time_model(args, stop);
    out.update({{"measured_ms", times.measured},
                {"predicted_ms", times.predicted},
                {"operators", table_json(times.operators)},
                {"bottlenecks", nlohmann::json::parse(to_json(times.bottlenecks))}});
    if (!args.json) {
      print_table(times.operators);
      fmt::print("a run: {:.3f} ms measured, {:.3f} ms predicted\n", times.measured, times.predicted);
      std::cout << (times.bottlenecks.empty() ? "no bottleneck of a tenth of the time or more\n"
                                              : to_text(times.bottlenecks));
    }
  }
  if (args.json)
    write_json(out);
  stop.exit_if_requested();
}

void profile(const profile_arguments& args) {
  if (args.calibrate && (args.keep || args.tune))
    fail(errc::invalid_argument,
         "--calibrate measures devices, --keep and --tune a model's nodes: calibrate first, then these");
  if (args.calibrate)
    return calibrate_devices(args);
  if (args.model.empty())
    fail(errc::invalid_argument, "troupe profile needs a model, or --calibrate");
  profile_model(args);
}

} // namespace

void add_profile(CLI::App& app) {
  auto args = std::make_shared<profile_arguments>();
  args->kernels = kernel_time::now;
  CLI::App* command = app.add_subcommand(
      "profile", "Measure a model's operators beside their predicted times; with --keep, remember them for later "
                 "predictions; with --tune, choose its kernels by measuring them; with --calibrate, measure the "
                 "devices themselves");
  add_model_options(*command, *args);
  command->get_option("model")->required(false);
  command->option_defaults()->group("Options");
  command->add_flag("--calibrate", args->calibrate, "Measure the devices and keep the result for later runs");
  command->add_flag("--keep", args->keep,
                    "Measure the model's nodes on each device alone and keep the result for later runs");
  command->add_flag(
      "--tune", args->tune,
      "Time the kernels that could run each call of the model on each GPU, and keep the fastest for later runs");
  command->add_option("--budget", args->budget_s, "Seconds that --tune takes on a GPU, about (default: 60)")
      ->check(CLI::Range(0.0, 86400.0));
  command->add_option("--file", args->file, "Where measurements are kept (default: in the user's cache folder)")
      ->type_name("FILE");
  command->add_option("--runs", args->runs, "Runs to take the median of; --keep measures for at least a second")
      ->check(CLI::Range(1, 10000));
  command->callback([args] { profile(*args); });
}

} // namespace troupe::cli
