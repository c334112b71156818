// troupe run: one inference; outputs summarised on stdout, saved where asked.
#include "cli/command.hpp"

#include "loader/tensor_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <limits>
#include <numeric>

namespace troupe::cli {
namespace {

struct run_arguments : model_options {
  std::filesystem::path output;
  double timeout_s = 0;
  std::filesystem::path trace;
};

/// Statistics of a numeric tensor over its finite elements.
struct summary {
  double smallest = std::numeric_limits<double>::infinity(), largest = -smallest, mean = 0;
  int64_t not_finite = 0;
};

summary summarise(const std::vector<double>& values) {
  summary s;
  int64_t finite = 0;
  for (double v : values) {
    if (!std::isfinite(v)) {
      ++s.not_finite;
      continue;
    }
    ++finite;
    s.smallest = std::min(s.smallest, v);
    s.largest = std::max(s.largest, v);
    s.mean += v;
  }
  s.mean = finite ? s.mean / static_cast<double>(finite) : 0;
  return s;
}

bool is_numeric(const tensor& t) {
  return types::numeric & set_of(t.type());
}

std::string describe_values(const tensor& t) {
  if (!is_numeric(t) || t.size() == 0)
    return "";
  const std::vector<double> values = to_double(t.view());
  const summary s = summarise(values);
  std::string text = fmt::format("min {:.6g}  max {:.6g}  mean {:.6g}", s.smallest, s.largest, s.mean);
  if (s.not_finite)
    text += fmt::format("  not finite {}", s.not_finite);
  text += "  [";
  for (size_t i = 0; i < std::min<size_t>(values.size(), 4); ++i)
    text += fmt::format("{}{:.6g}", i ? ", " : "", values[i]);
  return text + (values.size() > 4 ? ", …]" : "]");
}

/// Output names may hold '/' and the like.
std::string file_name(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '/' || c == '\\' || c == '\0'; }, '_');
  return name.empty() || name[0] == '.' ? "_" + name : name;
}

nlohmann::json to_json(const run_result& result) {
  nlohmann::json out;
  for (const auto& [name, value] : result.outputs) {
    nlohmann::json entry{{"type", to_string(value.type())}, {"dims", value.dims()}};
    if (is_numeric(value) && value.size() > 0) {
      const summary s = summarise(to_double(value.view()));
      entry.update({{"min", s.smallest}, {"max", s.largest}, {"mean", s.mean}, {"not_finite", s.not_finite}});
    }
    out["outputs"][name] = entry;
  }
  out["total_ms"] = result.stats.total_ms;
  out["chunks"] = result.stats.chunks;
  for (const auto& [device, ms] : result.stats.busy_ms)
    out["busy_ms"][device] = ms;
  out["lost_devices"] = result.stats.lost_devices;
  return out;
}

void print(const run_result& result, const session_stats& stats) {
  for (const auto& [name, value] : result.outputs)
    fmt::print("{}  {}  {}\n", name, describe(value), describe_values(value));
  fmt::print("\nrun {:.2f} ms in {} chunks", result.stats.total_ms, result.stats.chunks);
  for (const auto& [device, ms] : result.stats.busy_ms)
    fmt::print(", {} busy {:.2f} ms", device, ms);
  fmt::print(" (load {:.1f} ms, rewrite {:.1f} ms, plan {:.1f} ms)\n", stats.load_ms, stats.rewrite_ms, stats.plan_ms);
}

void run_model(const run_arguments& args) {
  engine devices(args.engine());
  const session model = devices.load(model_file(args.model).string(), args.session());
  named_tensors inputs = complete_inputs(model.inputs(), given_inputs(model, args), args.dim_values(), args.seed);
  const run_result result =
      model.run(std::move(inputs), {.timeout = std::chrono::milliseconds(static_cast<int64_t>(args.timeout_s * 1000)),
                                    .trace = !args.trace.empty()});
  write_trace(args.trace, result.trace);
  if (!args.output.empty()) {
    std::filesystem::create_directories(args.output);
    for (const auto& [name, value] : result.outputs)
      write_npy(args.output / (file_name(name) + ".npy"), value);
  }
  if (args.json)
    std::cout << to_json(result).dump(2) << '\n';
  else
    print(result, model.stats());
}

} // namespace

void add_run(CLI::App& app) {
  auto args = std::make_shared<run_arguments>();
  CLI::App* command = app.add_subcommand("run", "Run a model once and print its outputs");
  add_model_options(*command, *args);
  command->add_option("--output", args->output, "Folder to write the outputs to, as NAME.npy");
  command->add_option("--timeout", args->timeout_s, "Seconds after which the run fails (default: no limit)")
      ->check(CLI::NonNegativeNumber);
  add_trace_option(*command, args->trace);
  command->callback([args] { run_model(*args); });
}

} // namespace troupe::cli
