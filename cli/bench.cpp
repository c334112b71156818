// troupe bench: latency of a model from call to result, inputs and outputs in host memory.
//
// Every iteration gets fresh inputs in fresh memory, made before its clock starts; what is timed is upload, run and download.
#include "cli/command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iostream>

namespace troupe::cli {
namespace {

using clock = std::chrono::steady_clock;

struct bench_arguments : model_options {
  int runs = 20;
  int warmup = 3;
  std::filesystem::path trace;
};

struct measurement {
  double first_run_ms = 0; // plan, weights and kernels included
  std::vector<double> samples_ms;
  std::map<std::string, std::vector<double>> busy_ms; // by device
  session_stats stats;
};

double ms_since(clock::time_point start) {
  return std::chrono::duration<double, std::milli>(clock::now() - start).count();
}

tensor copy_of(const tensor& t) {
  tensor copy(t.type(), t.dims());
  if (t.type() == dtype::string)
    std::copy_n(t.data<std::string>(), t.size(), copy.mutable_data<std::string>());
  else
    std::memcpy(copy.mutable_data(), t.data(), static_cast<size_t>(t.bytes()));
  return copy;
}

/// Inputs of a test case (copied afresh each time) where the model is one and none are given, else made up afresh.
named_tensors fresh_inputs(const session& model, const bench_arguments& args, const named_tensors& base,
                           int iteration) {
  named_tensors copies;
  for (const auto& [name, value] : base)
    copies.emplace(name, copy_of(value));
  return complete_inputs(model.inputs(), std::move(copies), args.dim_values(),
                         args.seed + static_cast<uint64_t>(iteration));
}

measurement measure(const bench_arguments& args) {
  engine devices(args.engine());
  const session model = devices.load(model_file(args.model).string(), args.session());
  const named_tensors base = given_inputs(model, args);
  measurement m;
  for (int i = -args.warmup - 1; i < args.runs; ++i) {
    named_tensors inputs = fresh_inputs(model, args, base, i + args.warmup + 1);
    const auto start = clock::now();
    const run_result result = model.run(std::move(inputs));
    const double elapsed = ms_since(start);
    if (i == -args.warmup - 1)
      m.first_run_ms = elapsed;
    if (i < 0)
      continue;
    m.samples_ms.push_back(elapsed);
    for (const auto& [name, ms] : result.stats.busy_ms)
      m.busy_ms[name].push_back(ms);
  }
  m.stats = model.stats();
  if (!args.trace.empty()) // one more run, so that none of those measured pays for it
    write_trace(args.trace, model.run(fresh_inputs(model, args, base, args.runs), {.trace = true}).trace);
  return m;
}

double quantile(std::vector<double> samples, double q) {
  std::sort(samples.begin(), samples.end());
  const auto at = static_cast<size_t>(q * static_cast<double>(samples.size() - 1) + 0.5);
  return samples[at];
}

void bench(const bench_arguments& args) {
  const measurement m = measure(args);
  const double median = quantile(m.samples_ms, 0.5), p99 = quantile(m.samples_ms, 0.99);
  std::map<std::string, double> busy;
  for (const auto& [name, samples] : m.busy_ms)
    busy[name] = quantile(samples, 0.5);
  const double plan_ms = m.stats.rewrite_ms + m.stats.plan_ms;
  if (args.json) {
    const nlohmann::json out{{"model", args.model.string()},
                             {"runs", args.runs},
                             {"median_ms", median},
                             {"p99_ms", p99},
                             {"busy_ms", busy},
                             {"load_ms", m.stats.load_ms},
                             {"plan_ms", plan_ms},
                             {"first_run_ms", m.first_run_ms},
                             {"peak_bytes", peak_memory_bytes()},
                             {"samples_ms", m.samples_ms}};
    std::cout << out.dump() << '\n';
    return;
  }
  fmt::print("median {:.3f} ms, p99 {:.3f} ms over {} runs\n", median, p99, args.runs);
  for (const auto& [name, ms] : busy)
    fmt::print("{} computes {:.3f} ms of it (median)\n", name, ms);
  fmt::print("load {:.1f} ms, plan {:.1f} ms, first run {:.1f} ms, peak host memory {:.1f} MiB\n", m.stats.load_ms,
             plan_ms, m.first_run_ms, static_cast<double>(peak_memory_bytes()) / (1 << 20));
}

} // namespace

void add_bench(CLI::App& app) {
  auto args = std::make_shared<bench_arguments>();
  CLI::App* command = app.add_subcommand("bench", "Measure a model's latency");
  add_model_options(*command, *args);
  command->add_option("--runs", args->runs, "Measured runs (default 20)")->check(CLI::PositiveNumber);
  command->add_option("--warmup", args->warmup, "Runs before that (default 3)")->check(CLI::NonNegativeNumber);
  add_trace_option(*command, args->trace);
  command->callback([args] { bench(*args); });
}

} // namespace troupe::cli
