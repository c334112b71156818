// troupe operators: the operator table, and what of it GPUs leave to the CPU, as docs/operators.md shows them.
#include "cli/command.hpp"

#include "launch/cpu_work.hpp"
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
  for (const cpu_operators& row : operators_on_cpu())
    out["on_cpu"].push_back({{"domain", row.domain}, {"operators", row.operators}, {"reason", row.reason}});
  for (const cpu_calls& row : calls_on_cpu())
    out["on_cpu"].push_back({{"operators", row.operators}, {"calls", row.calls}, {"reason", row.reason}});
  write_json(out);
}

/// Prints words in lines of the table's width.
void print_words(std::string_view words) {
  std::string line = " ";
  while (!words.empty()) {
    const std::string_view word = words.substr(0, words.find(' '));
    if (line.size() + word.size() > 118) {
      fmt::print("{}\n", line);
      line = " ";
    }
    line += fmt::format(" {}", word);
    words.remove_prefix(std::min(words.size(), word.size() + 1));
  }
  fmt::print("{}\n", line);
}

void print_cpu_work() {
  fmt::print("\nNever on GPUs, but on the CPU:\n");
  for (const cpu_operators& row : operators_on_cpu())
    print_words(
        fmt::format("{}{}: {}", row.domain.empty() ? "" : fmt::format("{}: ", row.domain), row.operators, row.reason));
  fmt::print("\nOn the CPU of operators that GPUs run otherwise, beside element types without a kernel:\n");
  for (const cpu_calls& row : calls_on_cpu())
    print_words(fmt::format("{}: {} ({})", row.operators, row.calls, row.reason));
}

void print_text() {
  for (const auto& [domain, operators] : table()) {
    fmt::print("{} ({} operator{})\n", domain, operators.size(), operators.size() == 1 ? "" : "s");
    std::string names;
    for (const auto& [name, since] : operators)
      names += names.empty() ? name : " " + name;
    print_words(names);
  }
  print_cpu_work();
}

} // namespace

void add_operators(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command =
      app.add_subcommand("operators", "List the supported operators, and which of them run only on the CPU");
  command->add_flag("--json", *json, "Print JSON, with the opsets at which an operator changes");
  command->callback([json] { *json ? print_json() : print_text(); });
}

} // namespace troupe::cli
