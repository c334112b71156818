// troupe plan: which device runs what, in which chunks, and what moves.
#include "cli/command.hpp"

#include "plan/print.hpp"

#include <iostream>

namespace troupe::cli {
namespace {

void print_plan(const model_options& options) {
  engine devices(options.engine());
  const session model = devices.load(model_file(options.model).string(), options.session());
  const named_tensors inputs =
      complete_inputs(model.inputs(), read_inputs(options.inputs), options.dim_values(), options.seed);
  const auto plan = model.plan_for(inputs);
  const bound_plan_ptr bound = model.bind_for(inputs);
  std::cout << (options.json ? to_json(*plan, bound.get()) : to_text(*plan, bound.get())) << '\n';
}

} // namespace

void add_plan(CLI::App& app) {
  auto options = std::make_shared<model_options>();
  CLI::App* command = app.add_subcommand("plan", "Print the plan of a model");
  add_model_options(*command, *options);
  command->callback([options] { print_plan(*options); });
}

} // namespace troupe::cli
