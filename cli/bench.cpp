// troupe bench: latency of a model from call to result, inputs and outputs in host memory.
//
// Every iteration gets fresh inputs in fresh memory, made before its clock starts; what is timed is upload, run and
// download. With `--bind` decode steps are timed as they follow each other in use: bound values stay on their device,
// and their dims grow.
#include "base/elapsed.hpp"
#include "base/printable.hpp"
#include "base/quantile.hpp"
#include "cli/decode.hpp"
#include "cli/monitoring.hpp"
#include "cli/progress.hpp"
#include "cli/strategy_options.hpp"
#include "cli/summary.hpp"
#include "cli/throughput.hpp"
#include "measure/measure_nodes.hpp"
#include "ops/strided_copy.hpp"
#include "plan/estimate/predict.hpp"
#include "plan/show/statistics.hpp"
#include "trace/hops.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

namespace troupe::cli {
namespace {

using clock = std::chrono::steady_clock;

struct bench_arguments : model_options {
  int runs = 20;
  int warmup = 3;
  double warmup_seconds = 1;
  std::vector<std::string> bind; // "OUT=IN"
  std::vector<std::string> grow; // "total=1"
  std::filesystem::path trace;
  bool allocated = false;
  int in_flight = 0; // of the throughput; 0: not measured without a strategy
  monitor_arguments monitor;
};

struct measurement {
  throughput many;
  double first_run_ms = 0;            // plan, weights and kernels included
  std::optional<double> predicted_ms; // by the cost model; none for a strategy that the user named, which cuts requests
  double flops = 0;                   // of a run
  std::vector<device_stats> devices;
  std::vector<std::string> device_names;
  std::vector<double> samples_ms;
  std::map<std::string, std::vector<double>> busy_ms; // by device
  std::vector<run_hops> hops;                         // of runs beside those, which are traced
  session_stats stats;
  int64_t fetched_bytes = 0; // by a run
  std::optional<strategy_choice> chosen;
  std::optional<monitor_report> watched;
};

/// Inputs from `engine::allocate`, if the user wants such.
void move_to_allocated(engine& devices, const bench_arguments& args, named_tensors& inputs) {
  if (!args.allocated)
    return;
  for (auto& [name, value] : inputs)
    if (value.type() != dtype::string) {
      tensor there = devices.allocate(value.type(), value.dims());
      copy_all(value.view(), there.mutable_ref());
      value = std::move(there);
    }
}

tensor copy_of(const tensor& t) {
  tensor copy(t.type(), t.dims());
  copy_all(t.view(), copy.mutable_ref());
  return copy;
}

/// Inputs of a test case (copied) if the model is one and none are given, else made up; without those that are on a
/// device already.
named_tensors make_inputs(const session& model, const bench_arguments& args, const named_tensors& base, int iteration,
                          const named_device_tensors& on_device = {}) {
  named_tensors copies;
  for (const auto& [name, value] : base)
    copies.emplace(name, on_device.contains(name) ? value : copy_of(value));
  std::vector<value_info> wanted = model.inputs(); // and those that are given: dims of others follow from theirs
  std::erase_if(wanted,
                [&](const value_info& input) { return on_device.contains(input.name) && !base.contains(input.name); });
  named_tensors all =
      complete_inputs(wanted, std::move(copies), args.dim_values(), args.seed + static_cast<uint64_t>(iteration));
  std::erase_if(all, [&](const auto& input) { return on_device.contains(input.first); });
  return all;
}

/// The inputs of one run after another: a few sets in turns, since GPUs slow down and threads fall asleep while new
/// ones are made.
class input_sets {
public:
  input_sets(engine& devices, const session& model, const bench_arguments& args, const named_tensors& base)
      : devices_(devices), model_(model), args_(args), base_(base) {}

  /// Returns those of the next run, which has the ones in `on_device` already.
  const named_tensors& next(const named_device_tensors& on_device = {}) {
    constexpr size_t most = 4;
    if (on_device.size() != on_device_)
      sets_.clear();
    on_device_ = on_device.size();
    if (sets_.size() < most) {
      sets_.push_back(make_inputs(model_, args_, base_, static_cast<int>(sets_.size()), on_device));
      move_to_allocated(devices_, args_, sets_.back());
      return sets_.back();
    }
    return sets_[next_++ % most];
  }

private:
  engine& devices_;
  const session& model_;
  const bench_arguments& args_;
  const named_tensors& base_;
  std::vector<named_tensors> sets_;
  size_t on_device_ = 0, next_ = 0;
};

/// How a run keeps the bound outputs where they are made; the bound inputs are there from the second run on. Each run
/// is the same step.
class bound_values {
public:
  bound_values(const engine& devices, const session& model, const bench_arguments& args)
      : devices_(devices), pairs_(read_bindings(args.bind, model.outputs())) {
    if (!pairs_.empty())
      model.bind(pairs_); // checks
    for (const output_binding& pair : pairs_)
      options_.keep.push_back(pair.output);
  }

  const run_options& options() const { return options_; }

  /// Puts the bound inputs where the first run has left the outputs.
  void place(const named_tensors& inputs, const run_result& first) {
    for (const output_binding& pair : pairs_)
      if (const std::string& home = first.kept.at(pair.output)->device(); home != "host")
        options_.device_inputs[pair.input] = devices_.put(inputs.at(pair.input), home);
  }

private:
  const engine& devices_;
  std::vector<output_binding> pairs_;
  run_options options_;
};

void add_sample(const run_result& result, double elapsed_ms, const bench_arguments& args, progress& line,
                measurement& m) {
  m.samples_ms.push_back(elapsed_ms);
  for (const auto& [name, ms] : result.stats.busy_ms)
    m.busy_ms[name].push_back(ms);
  line.show(static_cast<double>(m.samples_ms.size()), args.runs, "runs");
}

/// Takes one decode step after the other, each with dims of its own.
void take_steps(const bench_arguments& args, const session& model, watcher& watch, const interrupts& stop,
                progress& line, measurement& m) {
  constexpr uint64_t untimed =
      4; // the first is given all values; then it is seen how they grow, and what follows is foreseen
  decoder steps(model, args, {.bind = args.bind, .grow = args.grow});
  while (m.samples_ms.size() < static_cast<size_t>(args.runs) && !stop.requested()) {
    named_tensors inputs = steps.next_inputs();
    const run_options how{.cancel = stop.token()};
    if (steps.steps_taken() < untimed) {
      steps.step(std::move(inputs), how);
      continue;
    }
    if (m.samples_ms.empty())
      watch.begin();
    const auto start = clock::now();
    const run_result result = steps.even_step(std::move(inputs), how);
    add_sample(result, milliseconds_since(start), args, line, m);
  }
}

/// Runs the model until there are enough samples, or `stop` says so; `m` has what was measured.
void take_samples(const bench_arguments& args, engine& devices, const session& model, const named_tensors& base,
                  bound_values& staying, watcher& watch, const interrupts& stop, measurement& m) {
  progress line("bench", args.shows_progress());
  line.watch(loads_of(devices));
  clock::time_point warm;
  input_sets sets(devices, model, args, base);
  bool settled = false; // before the last run
  for (int i = 0; m.samples_ms.size() < static_cast<size_t>(args.runs) && !stop.requested(); ++i) {
    run_options options = staying.options();
    named_tensors inputs = sets.next(options.device_inputs);
    options.cancel = stop.token();
    const named_tensors first_inputs = i == 0 ? inputs : named_tensors{};
    const bool counts = i > args.warmup && clock::now() >= warm && settled;
    if (counts && !args.bind.empty())
      return take_steps(args, model, watch, stop, line, m);
    if (counts && m.samples_ms.empty())
      watch.begin();
    const auto start = clock::now();
    const run_result result = model.run(std::move(inputs), options);
    const double elapsed = milliseconds_since(start);
    if (i == 0) {
      m.first_run_ms = elapsed;
      staying.place(first_inputs, result);
      warm = clock::now() + std::chrono::round<clock::duration>(std::chrono::duration<double>(args.warmup_seconds));
    }
    m.fetched_bytes = result.stats.fetched_bytes;
    settled = settled || has_settled(devices);
    if (counts)
      add_sample(result, elapsed, args, line, m);
  }
}

/// Traces runs that are not among the samples: the last one for the user, all of them for the way of a run.
void take_traces(const bench_arguments& args, engine& devices, const session& model, const named_tensors& base,
                 const bound_values& staying, const interrupts& stop, measurement& m) {
  const int hop_runs = std::min(args.runs, 20);
  const bool wants_file = !args.trace.empty(), wants_hops = args.json;
  input_sets sets(devices, model, args, base);
  for (int i = wants_hops ? hop_runs : 1; i > 0 && (wants_file || wants_hops) && !stop.requested(); --i) {
    run_options options = staying.options();
    options.trace = true;
    const run_result result = model.run(sets.next(options.device_inputs), options);
    if (const auto hops = hops_of(*result.trace); wants_hops && hops)
      m.hops.push_back(*hops);
    if (wants_file && i == 1)
      write_trace(args.trace, *result.trace, args.model);
  }
}

measurement measure(const bench_arguments& args, const interrupts& stop) {
  engine devices(args.engine());
  session_options prepared = args.session();
  if (!args.bind.empty() || args.in_flight > 0)
    prepared.dims.clear(); // they grow; devices that share requests take parts of them
  const session model = open_model(devices, args, prepared);
  const named_tensors base = given_inputs(model, args);
  bound_values staying(devices, model, args);
  watcher watch(devices, model, args.monitor);
  measurement m;
  try {
    take_samples(args, devices, model, base, staying, watch, stop, m);
  } catch (const error& e) {
    if (e.code() != errc::cancelled || m.samples_ms.empty())
      throw;
  }
  const int in_flight = args.in_flight > 0 || args.has_one_plan() ? args.in_flight : 2;
  if (in_flight > 0 && !stop.requested()) {
    watch.begin();
    named_tensors inputs = make_inputs(model, args, base, 0);
    move_to_allocated(devices, args, inputs);
    m.many = measure_throughput(model, inputs, args, args.runs, in_flight, stop.token());
  }
  m.watched = watch.end();
  m.stats = model.stats();
  m.chosen = model.choice();
  m.devices = devices.stats();
  for (const device_summary& d : devices.devices())
    m.device_names.push_back(d.name);
  const named_tensors first = make_inputs(model, args, base, 0);
  const bound_plan_ptr bound = bound_plan_of(model, first);
  print_warnings(model, first);
  m.flops = m.many.flops = flops_of(*bound);
  if (m.chosen)
    m.predicted_ms = m.chosen->latency_ms;
  else if (args.has_one_plan())
    m.predicted_ms = 1e3 * predict(*bound->source, dims_of_runs(*bound, args.dim_values())).makespan_s;
  take_traces(args, devices, model, base, staying, stop, m);
  return m;
}

/// What the devices' pools hold: taken from system or driver, in use, and how much of what is free is apart.
nlohmann::json memory_json(const measurement& m) {
  nlohmann::json j;
  for (size_t d = 0; d < m.devices.size(); ++d) {
    const device_stats& s = m.devices[d];
    j[m.device_names[d]] = {{"reserved_bytes", s.reserved_bytes},
                            {"used_bytes", s.used_bytes},
                            {"largest_gap_bytes", s.largest_gap_bytes},
                            {"fragmentation", s.fragmentation()}};
  }
  return j;
}

void print_memory(const measurement& m) {
  for (size_t d = 0; d < m.devices.size(); ++d)
    if (const device_stats& s = m.devices[d]; s.reserved_bytes > 0)
      fmt::print("{} holds {:.1f} MiB, {:.1f} % in use, {:.1f} % of the rest fragmented\n", m.device_names[d],
                 static_cast<double>(s.reserved_bytes) / (1 << 20),
                 100.0 * static_cast<double>(s.used_bytes) / static_cast<double>(s.reserved_bytes),
                 100.0 * s.fragmentation());
}

nlohmann::json to_json(const run_hops& hops) {
  return {{"to_device", hops.to_device},
          {"to_work", hops.to_work},
          {"work", hops.work},
          {"to_session", hops.to_session},
          {"to_caller", hops.to_caller}};
}

nlohmann::json to_json(const bench_arguments& args, const measurement& m, const std::map<std::string, double>& busy) {
  nlohmann::json j = {{"model", args.model.string()},
                      {"runs", m.samples_ms.size()},
                      {"median_ms", median(m.samples_ms)},
                      {"p99_ms", quantile(m.samples_ms, 0.99)},
                      {"gflops_per_s", m.flops / median(m.samples_ms) / 1e6},
                      {"busy_ms", busy},
                      {"load_ms", m.stats.load_ms},
                      {"plan_ms", m.stats.rewrite_ms + m.stats.plan_ms},
                      {"first_run_ms", m.first_run_ms},
                      {"peak_bytes", peak_memory_bytes()},
                      {"fetched_bytes", m.fetched_bytes},
                      {"caches", cache_json(m.stats)},
                      {"memory", memory_json(m)},
                      {"samples_ms", m.samples_ms}};
  if (!m.hops.empty())
    j["hops_ms"] = to_json(median_hops(m.hops));
  if (m.predicted_ms)
    j["predicted_ms"] = *m.predicted_ms;
  if (m.chosen)
    j["choice"] = cli::to_json(*m.chosen);
  if (m.many.in_flight > 0)
    j["throughput"] = to_json(m.many);
  if (m.watched)
    j["monitor"] = nlohmann::json::parse(to_json(*m.watched));
  return j;
}

void print(const measurement& m, const std::map<std::string, double>& busy) {
  std::cout << choice_text(m.chosen);
  fmt::print("median {:.3f} ms, p99 {:.3f} ms over {} runs, {:.4g} GFLOP/s{}\n", median(m.samples_ms),
             quantile(m.samples_ms, 0.99), m.samples_ms.size(), m.flops / median(m.samples_ms) / 1e6,
             m.predicted_ms ? fmt::format("; predicted {:.3f} ms", *m.predicted_ms) : "");
  for (const auto& [name, ms] : busy)
    fmt::print("{} computes {:.3f} ms of it (median)\n", name, ms);
  if (m.fetched_bytes > 0)
    fmt::print("{} bytes of bound inputs go through the host in every run: the plan wants them on another device\n",
               m.fetched_bytes);
  fmt::print("load {:.1f} ms, plan {:.1f} ms, first run {:.1f} ms, peak host memory {:.1f} MiB\n", m.stats.load_ms,
             m.stats.rewrite_ms + m.stats.plan_ms, m.first_run_ms,
             static_cast<double>(peak_memory_bytes()) / (1 << 20));
  fmt::print("found in caches: {}\n", cache_text(m.stats));
  print_memory(m);
  if (m.many.in_flight > 0)
    print(m.many);
  if (m.watched)
    std::cout << '\n' << to_text(*m.watched);
}

void bench(const bench_arguments& args) {
  const interrupts stop;
  const measurement m = measure(args, stop);
  if (m.samples_ms.empty()) // interrupted before the first one
    return stop.exit_if_requested();
  std::map<std::string, double> busy;
  for (const auto& [name, samples] : m.busy_ms)
    busy[name] = median(samples);
  if (args.json)
    write_json(to_json(args, m, busy));
  else
    print(m, busy);
  stop.exit_if_requested();
}

} // namespace

void add_bench(CLI::App& app) {
  auto args = std::make_shared<bench_arguments>();
  CLI::App* command = app.add_subcommand("bench", "Measure a model's latency");
  add_model_options(*command, *args);
  add_strategy_options(*command, *args);
  command->option_defaults()->group("Options");
  command->add_option("--runs", args->runs, "Measured runs (default 20)")->check(CLI::PositiveNumber);
  command->add_option("--warmup", args->warmup, "Runs before that (default 3)")->check(CLI::NonNegativeNumber);
  command
      ->add_option("--warmup-seconds", args->warmup_seconds,
                   "Time that those take at least (default 1): GPUs raise their clocks under load")
      ->check(CLI::NonNegativeNumber);
  command->option_defaults()->group("Steps");
  command
      ->add_option("--bind", args->bind,
                   "OUTPUT=INPUT: decode steps, whose bound values stay on their device, e.g. 'present.*=past.*'")
      ->type_name("OUTPUT=INPUT");
  command
      ->add_option("--grow", args->grow,
                   "DIM=SIZE: a symbolic dim of other inputs that is by so much larger in each step, e.g. total=1")
      ->type_name("NAME=SIZE")
      ->needs("--bind");
  command->option_defaults()->group("Options");
  command
      ->add_option("--in-flight", args->in_flight,
                   "Measure the throughput, too, with N requests under way (default with a strategy: 2)")
      ->check(CLI::PositiveNumber);
  command->add_flag("--allocated", args->allocated,
                    "Inputs in memory that GPUs read without a copy (engine::allocate), not in ordinary memory");
  add_trace_option(*command, args->trace);
  add_monitor_options(*command, args->monitor);
  command->callback([args] { bench(*args); });
}

} // namespace troupe::cli
