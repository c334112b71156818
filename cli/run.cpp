// troupe run: one inference, or steps of a decoder; outputs summarised on stdout, saved if asked.
#include "base/quantile.hpp"
#include "cli/decode.hpp"
#include "cli/progress.hpp"
#include "cli/strategy_options.hpp"
#include "cli/stream.hpp"
#include "cli/summary.hpp"

#include "base/printable.hpp"
#include "plan/show/statistics.hpp"
#include "troupe/tensor_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>

namespace troupe::cli {
namespace {

struct run_arguments : model_options {
  std::filesystem::path output;
  double timeout_s = 0;
  std::filesystem::path trace;
  decode_options decode;
  std::string stream; // a folder of inputs, or "-"
  monitor_arguments monitor;
};

nlohmann::json to_json(const decoded& steps, double flops) {
  const run_result& result = steps.last;
  nlohmann::json out = {{"runs", steps.step_ms.size()},
                        {"median_ms", median(steps.step_ms)},
                        {"repeated_from", steps.repeated_from},
                        {"repeated_steps", steps.repeated_steps}};
  for (const auto& [name, value] : result.outputs)
    out["outputs"][name] = summary_json(value);
  out["total_ms"] = result.stats.total_ms;
  out["chunks"] = result.stats.chunks;
  for (const auto& [device, ms] : result.stats.busy_ms) {
    out["busy_ms"][device] = ms;
    out["utilisation"][device] = ms / result.stats.total_ms;
  }
  out["parallel_efficiency"] = result.stats.parallel_efficiency();
  out["gflops_per_s"] = flops / result.stats.total_ms / 1e6;
  out["lost_devices"] = result.stats.lost_devices;
  return out;
}

void print(const decoded& steps, const session_stats& stats, double flops) {
  const run_result& result = steps.last;
  for (const auto& [name, value] : result.outputs)
    fmt::print("{}  {}  {}\n", printable(name), describe(value), printable(summary_text(value)));
  const double total = result.stats.total_ms;
  if (steps.step_ms.size() > 1)
    fmt::print("\n{} runs of {:.2f} ms (median); the last:", steps.step_ms.size(), median(steps.step_ms));
  fmt::print("\nrun {:.2f} ms in {} chunks, {:.4g} GFLOP/s, parallel efficiency {:.0f} %", total, result.stats.chunks,
             flops / total / 1e6, 100 * result.stats.parallel_efficiency());
  for (const auto& [device, ms] : result.stats.busy_ms)
    fmt::print(", {} busy {:.2f} ms ({:.0f} %)", device, ms, 100 * ms / total);
  fmt::print(" (load {:.1f} ms, rewrite {:.1f} ms, plan {:.1f} ms)\n", stats.load_ms, stats.rewrite_ms, stats.plan_ms);
}

/// Seconds as a run's limit: zero alone is none, so less than a millisecond becomes one.
std::chrono::milliseconds limit_of(double seconds) {
  const double ms = std::ceil(seconds * 1000);
  return ms < 1e15 ? std::chrono::milliseconds(static_cast<int64_t>(ms)) : std::chrono::milliseconds::max();
}

/// Runs the model once, or step by step.
decoded run_as_asked(const engine& devices, const session& model, const run_arguments& args) {
  const run_options how{.timeout = limit_of(args.timeout_s), .trace = !args.trace.empty()};
  if (!args.decode.bind.empty())
    return decode(devices, model, args, args.decode, how);
  progress line("running", args.shows_progress());
  line.watch(loads_of(devices));
  decoded once;
  once.first_inputs = complete_inputs(model.inputs(), given_inputs(model, args), args.dim_values(), args.seed);
  once.last = model.run(once.first_inputs, how);
  once.step_ms = {once.last.stats.total_ms};
  return once;
}

void run_model(const run_arguments& args) {
  engine devices(args.engine());
  session_options prepared = args.session();
  if (!args.decode.bind.empty())
    prepared.dims.clear(); // they are the first step's
  const session model = open_model(devices, args, prepared);
  const decoded steps = run_as_asked(devices, model, args);
  if (steps.last.trace)
    write_trace(args.trace, *steps.last.trace, args.model);
  if (!args.output.empty()) {
    std::filesystem::create_directories(args.output);
    write_outputs(args.output, steps.last.outputs);
  }
  const bound_plan_ptr bound = bound_plan_of(model, steps.first_inputs);
  print_warnings(model, steps.first_inputs);
  const double flops = flops_of(*bound);
  if (args.json) {
    write_json(to_json(steps, flops));
  } else {
    std::cout << choice_text(model.choice());
    print(steps, model.stats(), flops);
  }
}

} // namespace

void add_run(CLI::App& app) {
  auto args = std::make_shared<run_arguments>();
  CLI::App* command = app.add_subcommand("run", "Run a model once, or step by step, and print its outputs");
  add_model_options(*command, *args);
  add_strategy_options(*command, *args);
  command->option_defaults()->group("Output");
  command
      ->add_option("--output", args->output,
                   "Folder to write the outputs to, as NAME.npy (strings, sequences and optionals: NAME.pb)")
      ->type_name("FOLDER");
  command->option_defaults()->group("Options");
  command->add_option("--timeout", args->timeout_s, "Seconds after which the run fails (default: no limit)")
      ->check(CLI::NonNegativeNumber);
  add_decode_options(*command, args->decode);
  add_trace_option(*command, args->trace);
  command->option_defaults()->group("Inputs");
  command
      ->add_option(
          "--stream", args->stream,
          "Run each entry of a folder (.npz; .npy or .pb for one input; a folder of input_N.pb), or of names on "
          "stdin (-), through the session's queue; --output then has a folder for each")
      ->type_name("FOLDER")
      ->excludes(command->get_option("--bind"), command->get_option("--trace"), command->get_option("--input"));
  add_monitor_options(*command, args->monitor);
  command->get_option("--monitor")->needs("--stream");
  command->get_option("--metrics")->needs("--stream");
  command->callback([args] {
    if (args->stream.empty())
      run_model(*args);
    else
      run_stream(*args, {args->stream, args->output, limit_of(args->timeout_s), args->monitor});
  });
}

} // namespace troupe::cli
