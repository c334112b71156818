// troupe plan: which device runs what and why, in which chunks, and what moves.
#include "cli/strategy_options.hpp"
#include "cli/unused_hosts.hpp"

#include "base/printable.hpp"
#include "loader/annotations.hpp"
#include "loader/file_facts.hpp"
#include "plan/place/policies.hpp"
#include "plan/show/annotate.hpp"
#include "plan/show/print.hpp"
#include "strategy/replica_sets.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>

namespace troupe::cli {
namespace {

struct plan_arguments : model_options {
  bool dot = false;
  bool compare = false;
  std::string node;
  std::string annotate;
};

constexpr double mib = 1 << 20;

void print(const std::vector<strategy_choice>& choices, bool json) {
  if (json) {
    nlohmann::json all = nlohmann::json::array();
    for (const strategy_choice& c : choices)
      all.push_back(to_json(c));
    return write_json(all);
  }
  fmt::print("{:<15} {:<14} {:>12} {:>12} {:>10}  {:<28} {}\n", "strategy", "policy", "latency ms", "requests/s", "MiB",
             "devices", "why");
  for (const strategy_choice& c : choices) {
    const auto figure = [&](double value, const char* format) {
      return c.has_plan ? fmt::format(fmt::runtime(format), value) : "-";
    };
    fmt::print("{:<15} {:<14} {:>12} {:>12} {:>10}  {:<28} {}\n", to_string(c.strategy), to_string(c.policy),
               figure(c.latency_ms, "{:.3f}"), figure(c.requests_per_s, "{:.1f}"),
               figure(static_cast<double>(c.memory_bytes) / mib, "{:.1f}"),
               fmt::format("{}", fmt::join(c.devices, " ")), c.why);
  }
}

void print_plan(const plan_arguments& args) {
  engine devices(args.engine());
  const session model = open_model(devices, args);
  const named_tensors inputs =
      complete_inputs(model.inputs(), read_inputs(args.inputs, model.inputs()), args.dim_values(), args.seed);
  if (args.compare)
    return print(model.compare(inputs), args.json);
  if (!args.node.empty()) {
    const bound_plan_ptr bound = bound_plan_of(model, inputs);
    std::cout << describe_node(*bound->source, args.node, bound.get());
    return;
  }
  if (!args.annotate.empty())
    write_annotated(model_file(args.model), annotations_of(*bound_plan_of(model, inputs)->source), args.annotate);
  const plan_format format = args.dot ? plan_format::dot : args.json ? plan_format::json : plan_format::text;
  std::cout << model.plan(inputs, format) << (format == plan_format::json ? "\n" : "");
  for (const std::string& line : read_facts(model_file(args.model)).ignored)
    (format == plan_format::text ? std::cout : std::cerr) << "ignored: " << printable(line) << '\n';
  print_warnings(model, inputs);
  if (args.has_one_plan())
    for (const std::string& line : why_unused(devices, args, inputs, *bound_plan_of(model, inputs)))
      (format == plan_format::text ? std::cout : std::cerr) << line << '\n';
}

} // namespace

void add_plan(CLI::App& app) {
  auto args = std::make_shared<plan_arguments>();
  CLI::App* command = app.add_subcommand(
      "plan", "Print the plan of a model; `--json` is what `--load` takes, here and in `troupe run`");
  add_model_options(*command, *args);
  add_strategy_options(*command, *args);
  command->option_defaults()->group("Options");
  CLI::Option* dot =
      command->add_flag("--dot", args->dot, "Print a Graphviz graph: devices, chunks, transfers with their bytes");
  CLI::Option* node =
      command->add_option("--node", args->node, "Print all about one node: where it is and why, operands, attributes")
          ->type_name("NAME");
  command
      ->add_option("--annotate", args->annotate,
                   "Also write a copy of the model that says what runs where, as ONNX's device configurations do (IR "
                   "version 11); troupe places such a file as it says")
      ->type_name("FILE");
  command
      ->add_flag("--compare", args->compare,
                 "Print what every strategy and policy should cost, the one that `--strategy auto` takes first")
      ->excludes(dot, node, command->get_option("--load"), command->get_option("--annotate"));
  command->callback([args] {
    if (args->compare)
      args->strategy = strategy::automatic; // what it would choose from
    print_plan(*args);
  });
}

} // namespace troupe::cli
