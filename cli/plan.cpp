// troupe plan: which device runs what and why, in which chunks, and what moves.
#include "cli/strategy_options.hpp"
#include "cli/unused_hosts.hpp"

#include "plan/show/print.hpp"

#include <iostream>

namespace troupe::cli {
namespace {

struct plan_arguments : model_options {
  bool dot = false;
  std::string node;
};

void print_plan(const plan_arguments& args) {
  engine devices(args.engine());
  const session model = open_model(devices, args);
  const named_tensors inputs = complete_inputs(model.inputs(), read_inputs(args.inputs), args.dim_values(), args.seed);
  if (!args.node.empty()) {
    const bound_plan_ptr bound = bound_plan_of(model, inputs);
    std::cout << describe_node(*bound->source, args.node, bound.get());
    return;
  }
  const plan_format format = args.dot ? plan_format::dot : args.json ? plan_format::json : plan_format::text;
  std::cout << model.plan(inputs, format) << (format == plan_format::json ? "\n" : "");
  if (args.strategy == strategy::none)
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
  command->add_flag("--dot", args->dot, "Print a Graphviz graph: devices, chunks, transfers with their bytes");
  command->add_option("--node", args->node, "Print all about one node: where it is and why, operands, attributes");
  command->callback([args] { print_plan(*args); });
}

} // namespace troupe::cli
