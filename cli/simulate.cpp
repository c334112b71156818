// troupe simulate: a model on devices that need not exist, in virtual time.
#include "cli/strategy_options.hpp"

#include "run/model.hpp"
#include "schedules/task_model.hpp"
#include "troupe/simulation.hpp"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <iostream>

namespace troupe::cli {
namespace {

struct simulate_arguments : model_options {
  simulation_options how;
  std::string arrivals = "closed:1";
  std::vector<std::string> losses; // "DEVICE@MS[-MS]"
  std::vector<std::string> speeds; // "DEVICE@MS=PERCENT"
  std::filesystem::path trace;
  std::string save_graph;
};

double read_number(std::string_view text, std::string_view option) {
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc{} || end != text.data() + text.size())
    fail(errc::invalid_argument, "{}: '{}' is not a number", option, text);
  return value;
}

/// Reads "closed:N", "poisson:PER_SECOND", or a file (`troupe::read_arrivals`).
arrivals arrivals_of(const std::string& text) {
  arrivals a;
  if (text.starts_with("closed:")) {
    const double n = read_number(std::string_view(text).substr(7), "--arrivals closed");
    if (!(n >= 1 && n <= 1e7))
      fail(errc::invalid_argument, "--arrivals '{}': at least one request must be in flight", text);
    a.in_flight = static_cast<size_t>(n);
  } else if (text.starts_with("poisson:")) {
    a.how = arrivals::process::poisson;
    a.per_second = read_number(std::string_view(text).substr(8), "--arrivals poisson");
  } else {
    if (!std::filesystem::exists(text))
      fail(errc::io, "--arrivals '{}' is neither closed:N nor poisson:PER_SECOND, nor a file that can be read", text);
    return read_arrivals(text);
  }
  return a;
}

/// Reads "DEVICE@MS" or "DEVICE@MS-MS".
simulated_loss read_loss(const std::string& text) {
  const size_t at = text.rfind('@');
  if (at == std::string::npos)
    fail(errc::invalid_argument, "--fail '{}': DEVICE@MS or DEVICE@MS-MS is needed", text);
  const std::string_view times = std::string_view(text).substr(at + 1);
  const size_t dash = times.find('-');
  return {.device = text.substr(0, at),
          .at_ms = read_number(times.substr(0, dash), "--fail"),
          .back_ms = dash == std::string_view::npos ? 0 : read_number(times.substr(dash + 1), "--fail")};
}

/// Reads "DEVICE@MS=PERCENT".
simulated_speed read_speed(const std::string& text) {
  const size_t at = text.rfind('@'), is = text.rfind('=');
  if (at == std::string::npos || is == std::string::npos || is < at)
    fail(errc::invalid_argument, "--slow '{}': DEVICE@MS=PERCENT is needed", text);
  return {.device = text.substr(0, at),
          .at_ms = read_number(std::string_view(text).substr(at + 1, is - at - 1), "--slow"),
          .percent = read_number(std::string_view(text).substr(is + 1), "--slow")};
}

void save_graph(const simulate_arguments& args) {
  if (!names_task_graph(args.model.string()))
    fail(errc::invalid_argument, "--save-graph: '{}' is no task graph (graph:NAME or graph:FILE)", args.model.string());
  save_task_graph(read_task_graph(args.model.string()), args.save_graph);
}

void simulate_model(simulate_arguments& args, bool requests_given) {
  simulation_options& how = args.how;
  if (!args.save_graph.empty())
    save_graph(args);
  how.session = args.session();
  if (args.devices != std::vector<std::string>{"all"})
    how.session.devices = args.devices;
  how.arrivals = arrivals_of(args.arrivals);
  if (how.arrivals.how == arrivals::process::listed && !requests_given)
    how.requests = how.arrivals.times_s.size();
  for (const std::string& text : args.losses)
    how.losses.push_back(read_loss(text));
  for (const std::string& text : args.speeds)
    how.speeds.push_back(read_speed(text));
  how.seed = args.seed;
  how.trace = !args.trace.empty();
  const built_model model = load_or_make(args.model);
  const model_ptr declared = make_model(model.source(), {}, 0);
  const simulation_report report = simulate(
      model,
      complete_inputs(declared->inputs, read_inputs(args.inputs, declared->inputs), args.dim_values(), args.seed), how);
  if (report.trace)
    write_trace(args.trace, *report.trace, args.model);
  if (args.strategy == strategy::automatic)
    (args.json ? std::cerr : std::cout) << choice_text(report.choice);
  std::cout << (args.json ? to_json(report) + '\n' : to_text(report));
  if (report.failed == report.requests)
    fail(errc::device_failed, "no request had an answer: {}", report.first_failure);
}

} // namespace

void add_simulate(CLI::App& app) {
  auto args = std::make_shared<simulate_arguments>();
  CLI::App* command = app.add_subcommand(
      "simulate", "Run a model on the devices of a cluster file, in virtual time: how long would it take, and why?");
  add_input_options(*command, *args);
  command->get_option("model")->description(
      "An .onnx file, a folder that holds model.onnx, or a made-up task graph: "
      "graph:NAME[,PARAMETER=VALUE…], e.g. graph:cholesky,tiles=8, or one of a file: graph:FILE "
      "(WfFormat, DAX, STG, DOT)");
  command->option_defaults()->group("Options");
  command
      ->add_option("--cluster", args->how.cluster_file,
                   "The cluster: JSON (`troupe cluster`), or a platform of SimGrid")
      ->type_name("FILE")
      ->required();
  command->add_option("--devices", args->devices, "Devices of the cluster that may be used (default: all)")
      ->delimiter(',')
      ->allow_extra_args(false);
  add_placement_options(*command, *args);
  add_strategy_options(*command, *args);
  command->option_defaults()->group("Options");
  CLI::Option* requests = command->add_option("--requests", args->how.requests, "Requests (default 1)");
  command->add_option("--warm-up", args->how.warm_up,
                      "Requests before these that do not count, by which strategies learn speeds (default 0)");
  command
      ->add_option("--arrivals", args->arrivals,
                   "When they come: closed:N, N in flight at a time (default 1); poisson:PER_SECOND; or a file with a "
                   "time in seconds a line, or CSV with the columns arrival, rows, deadline")
      ->type_name("ARRIVALS");
  command->add_option("--fail", args->losses, "DEVICE@MS[-MS]: a device that is lost then, and comes back")
      ->type_name("DEVICE@MS")
      ->allow_extra_args(false);
  command
      ->add_option("--slow", args->speeds,
                   "DEVICE@MS=PERCENT: a device that has PERCENT of its speed from then on, e.g. vulkan:1@2000=50")
      ->type_name("DEVICE@MS=PERCENT")
      ->allow_extra_args(false);
  command->add_option("--noise", args->how.noise,
                      "Standard deviation of the logarithm of each chunk's time (default 0); --seed decides the rest");
  command->add_option("--profile", args->how.profile_file, "Measured profiles (default: those of this user)")
      ->type_name("FILE");
  add_trace_option(*command, args->trace);
  command
      ->add_option("--save-graph", args->save_graph,
                   "Also write the task graph: NAME.json, WfFormat 1.5; NAME.stg; NAME.dot")
      ->type_name("FILE");
  command->callback([args, requests] { simulate_model(*args, requests->count() > 0); });
}

} // namespace troupe::cli
