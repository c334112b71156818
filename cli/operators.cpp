// troupe operators: the operator table, as the README shows it.
#include "cli/command.hpp"

#include "ops/registry.hpp"

#include <fmt/format.h>

#include <iostream>
#include <set>

namespace troupe::cli {
namespace {

/// Opsets at which each operator's row changes, by domain and name.
using operators_by_domain = std::map<std::string, std::map<std::string, std::set<int64_t>>>;

operators_by_domain table() {
  operators_by_domain t;
  for (const op_def* def : all_ops())
    t[def->domain.empty() ? "ai.onnx" : std::string(def->domain)][std::string(def->name)].insert(def->since);
  return t;
}

void print_json() {
  nlohmann::json out;
  for (const auto& [domain, operators] : table())
    for (const auto& [name, since] : operators)
      out[domain][name] = since;
  write_json(out);
}

void print_text() {
  for (const auto& [domain, operators] : table()) {
    fmt::print("{} ({} operators)\n", domain, operators.size());
    std::string line = " ";
    for (const auto& [name, since] : operators) {
      if (line.size() + name.size() > 118) {
        fmt::print("{}\n", line);
        line = " ";
      }
      line += " " + name;
    }
    fmt::print("{}\n", line);
  }
}

} // namespace

void add_operators(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("operators", "List the operators that troupe knows");
  command->add_flag("--json", *json, "Print JSON, with the opsets at which an operator changes");
  command->callback([json] { *json ? print_json() : print_text(); });
}

} // namespace troupe::cli
