// troupe test: runs ONNX test cases (model.onnx beside test_data_set_N/{input,output}_N.pb) and compares.
#include "cli/command.hpp"
#include "cli/compare.hpp"
#include "cli/fresh_engine.hpp"
#include "cli/progress.hpp"
#include "cli/strategy_options.hpp"

#include "base/printable.hpp"
#include "loader/onnx_loader.hpp"
#include "plan/show/idle_devices.hpp"
#include "troupe/tensor_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

namespace troupe::cli {
namespace {

namespace fs = std::filesystem;

struct test_arguments : model_options {
  std::vector<fs::path> paths;
  tolerance allowed;
};

enum class verdict : uint8_t { passed, failed, unsupported };

constexpr std::string_view verdict_names[] = {"passed", "failed", "unsupported"};

struct case_result {
  std::string name;
  std::vector<std::string> operators;
  verdict outcome = verdict::failed;
  double worst = 0; // in tolerances
  std::string reason;
  std::map<std::string, int> nodes; // that devices run, by device; views are free and not counted
};

bool is_case(const fs::path& folder) {
  return fs::is_regular_file(folder / "model.onnx");
}

/// All case folders under `path`, itself included, in the order of their names.
std::vector<fs::path> find_cases(const fs::path& path) {
  if (!fs::exists(path))
    fail(errc::io, "'{}' does not exist", path.string());
  std::vector<fs::path> cases;
  if (is_case(path))
    cases.push_back(path);
  else if (fs::is_directory(path))
    for (const auto& entry : fs::recursive_directory_iterator(path))
      if (entry.is_directory() && is_case(entry.path()))
        cases.push_back(entry.path());
  if (cases.empty())
    fail(errc::io, "'{}' holds no test case (a folder with model.onnx and test_data_set_0)", path.string());
  std::sort(cases.begin(), cases.end());
  return cases;
}

std::vector<fs::path> data_sets(const fs::path& folder) {
  std::vector<fs::path> sets;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_directory() && entry.path().filename().string().starts_with("test_data_set_"))
      sets.push_back(entry.path());
  std::sort(sets.begin(), sets.end());
  return sets;
}

/// Runs one data set; returns how many outputs were compared.
int run_data_set(const session& model, const fs::path& set, const tolerance& allowed, case_result& result) {
  const named_tensors inputs = read_data_set(set, model.inputs());
  const run_result run = model.run(inputs);
  for (const std::string& device : run.stats.lost_devices)
    result.reason = fmt::format("{}: device '{}' was lost", set.filename().string(), device);
  result.nodes.clear();
  count_nodes(*plan_of(model, inputs), result.nodes);
  int compared = 0;
  for (size_t i = 0; i < model.outputs().size(); ++i) {
    const fs::path file = set / fmt::format("output_{}.pb", i);
    if (!fs::exists(file))
      continue; // large models keep their first outputs only
    const std::string& name = model.outputs()[i].name;
    const tensor& got = run.outputs.at(name);
    const comparison c = compare(got, read_pb(file, got.type()).value, allowed);
    ++compared;
    result.worst = std::max(result.worst, c.worst);
    if (!c.difference.empty() && result.reason.empty())
      result.reason = fmt::format("{} '{}': {}", set.filename().string(), name, c.difference);
  }
  return compared;
}

void run_case(engine& devices, const fs::path& folder, const test_arguments& args, case_result& result) {
  const session model = devices.load((folder / "model.onnx").string(), args.session());
  int compared = 0;
  for (const auto& set : data_sets(folder))
    compared += run_data_set(model, set, args.allowed, result);
  if (compared == 0)
    result.reason = "no expected output was found, so nothing was compared";
  result.outcome = result.reason.empty() ? verdict::passed : verdict::failed;
}

case_result test_case(fresh_engine& devices, const fs::path& folder, const test_arguments& args) {
  case_result result{.name = folder.string()};
  try {
    result.operators = operators_of(folder / "model.onnx");
    run_case(devices.get(), folder, args, result);
  } catch (const error& e) {
    result.outcome = e.code() == errc::unsupported ? verdict::unsupported : verdict::failed;
    result.reason = e.what();
  }
  return result;
}

using tally = std::array<int, 3>; // by verdict

nlohmann::json to_json(const tally& t) {
  return {{"passed", t[0]}, {"failed", t[1]}, {"unsupported", t[2]}};
}

std::map<std::string, tally> count_by_operator(const std::vector<case_result>& results) {
  std::map<std::string, tally> counts;
  for (const auto& result : results)
    for (const auto& name : result.operators)
      ++counts[name][static_cast<size_t>(result.outcome)];
  return counts;
}

void print_case(const case_result& result) {
  fmt::print("{:11} {:8.2g}  {}{}{}\n", verdict_names[static_cast<size_t>(result.outcome)], result.worst,
             printable(result.name), result.reason.empty() ? "" : ": ", printable(result.reason));
  std::cout.flush();
}

void print_by_operator(const std::map<std::string, tally>& counts) {
  fmt::print("\n{:28} {:>7} {:>7} {:>12}\n", "operator", "passed", "failed", "unsupported");
  for (const auto& [name, t] : counts)
    fmt::print("{:28} {:7} {:7} {:12}\n", printable(name), t[0], t[1], t[2]);
  fmt::print("\n");
}

nlohmann::json to_json(const std::vector<case_result>& results, const tally& total) {
  nlohmann::json out = to_json(total);
  for (const auto& [name, t] : count_by_operator(results))
    out["operators"][name] = to_json(t);
  for (const auto& r : results)
    out["cases"].push_back({{"name", r.name},
                            {"outcome", verdict_names[static_cast<size_t>(r.outcome)]},
                            {"worst_in_tolerances", r.worst},
                            {"nodes", r.nodes},
                            {"reason", r.reason}});
  return out;
}

std::vector<case_result> test_cases(fresh_engine& devices, const test_arguments& args, const interrupts& stop) {
  std::vector<fs::path> folders;
  for (const auto& path : args.paths)
    std::ranges::move(find_cases(path), std::back_inserter(folders));
  std::vector<case_result> results;
  progress line("test", args.shows_progress());
  for (const auto& folder : folders) {
    if (stop.requested())
      break;
    results.push_back(test_case(devices, folder, args));
    if (!args.json && (!args.quiet || results.back().outcome == verdict::failed)) {
      line.clear();
      print_case(results.back());
    }
    line.show(static_cast<double>(results.size()), static_cast<double>(folders.size()), "cases");
  }
  return results;
}

void run_tests(const test_arguments& args) {
  const interrupts stop;
  fresh_engine devices(args.engine(),
                       {.gpu_validation = args.gpu_validation}); // a case that loses a device costs the others nothing
  const std::vector<case_result> results = test_cases(devices, args, stop);
  tally total{};
  for (const case_result& r : results)
    ++total[static_cast<size_t>(r.outcome)];
  if (args.json) {
    write_json(to_json(results, total));
  } else {
    if (results.size() > 1 && !args.quiet)
      print_by_operator(count_by_operator(results));
    fmt::print("{} passed, {} failed, {} unsupported\n", total[0], total[1], total[2]);
  }
  const std::vector<std::string> messages = devices.all_gpu_messages();
  for (const std::string& message : messages)
    fmt::print(stderr, "Vulkan validation: {}\n", message);
  if (args.gpu_validation)
    fmt::print(stderr, "{} messages of the Vulkan validation layer\n", messages.size());
  stop.exit_if_requested();
  if (total[static_cast<size_t>(verdict::failed)] > 0 || !messages.empty())
    throw CLI::RuntimeError(1);
}

} // namespace

void add_test(CLI::App& app) {
  auto args = std::make_shared<test_arguments>();
  CLI::App* command = app.add_subcommand("test", "Run ONNX test cases and compare with their expected outputs");
  command->add_option("paths", args->paths, "Case folders, or trees of them")->type_name("FOLDER")->required();
  command->add_option("--rtol", args->allowed.relative, "Relative tolerance (default 1e-3)")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--atol", args->allowed.absolute, "Absolute tolerance (default 1e-7)")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--l2", args->allowed.l2, "Float outputs pass by their relative L2 distance (half precision)")
      ->check(CLI::PositiveNumber);
  command->add_flag("--validate", args->gpu_validation,
                    "Run GPUs under Vulkan's validation layer; any message fails the run");
  add_engine_options(*command, *args);
  add_strategy_options(*command, *args);
  command->get_option("--quiet")->description("Print failed cases and the totals only, and show no progress");
  command->callback([args] { run_tests(*args); });
}

} // namespace troupe::cli
