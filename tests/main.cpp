// Catch2's main, with one option of our own: --kernel-report FILE writes the errors of the GPU's kernels
// (scripts/gpu-check).
#define CATCH_CONFIG_RUNNER
#include "support/catch.hpp"
#include "support/gpu.hpp"
#include "support/kernel_case.hpp"

#include <nlohmann/json.hpp>

#include <dlfcn.h>
#include <fstream>

#ifdef __SANITIZE_ADDRESS__
/// Huge allocations fail, as under a memory limit, instead of ending the process. The sanitizer's library looks the
/// function up by its name: hidden, as all else here is, it would not be found.
extern "C" [[gnu::visibility("default")]] const char* __asan_default_options() {
  return "allocator_may_return_null=1:max_allocation_size_mb=4096";
}
#endif

namespace {

/// Keeps the GPU's driver and layer in memory to the end, so that a leak checker can name them in what they do not free
/// (tests/lsan.supp).
void keep_loaded() {
#ifdef __SANITIZE_ADDRESS__
  for (const char* name : {"libvulkan_lvp.so", "libVkLayer_khronos_validation.so"})
    dlopen(name, RTLD_LAZY | RTLD_NODELETE); // if there are such
#endif
}

/// Takes the option out of the arguments; returns its file, empty if it is not there.
std::string take_report_option(std::vector<char*>& arguments) {
  const auto at = std::find(arguments.begin(), arguments.end(), std::string_view("--kernel-report"));
  if (arguments.end() - at < 2)
    return {};
  const std::string file = at[1];
  arguments.erase(at, at + 2);
  return file;
}

void write_report(const std::string& file) {
  const auto& gpu = troupe::test::gpus()->gpus().at(0).snapshot;
  nlohmann::json kernels = nlohmann::json::object();
  for (const auto& [name, record] : troupe::test::kernel_records())
    kernels[name] = {{"calls", record.calls},
                     {"worst_absolute", record.worst_absolute},
                     {"worst_in_tolerances", record.worst_in_tolerances}};
  nlohmann::json ties = nlohmann::json::object();
  for (const auto& [name, record] : troupe::test::tie_records())
    ties[name] = {{"values", record.values},
                  {"different", record.different},
                  {"subnormals", record.subnormals},
                  {"different_subnormals", record.different_subnormals}};
  const nlohmann::json report{{"device", gpu.name},
                              {"driver_version", gpu.driver_version},
                              {"validated", troupe::test::gpus_are_validated()},
                              {"kernels", std::move(kernels)},
                              {"beside_ties", std::move(ties)}};
  std::ofstream(file) << report.dump(1) << '\n';
}

} // namespace

int main(int argc, char** argv) {
  keep_loaded();
  std::vector<char*> arguments(argv, argv + argc);
  const std::string report = take_report_option(arguments);
  const int failed = Catch::Session().run(static_cast<int>(arguments.size()), arguments.data());
  if (!report.empty())
    write_report(report);
  return failed;
}
