// troupe exec: another program, with troupe in the place of ONNX Runtime's library.
#include "cli/command.hpp"

#include "base/error.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <set>
#include <unistd.h>

namespace troupe::cli {
namespace {

/// Returns the folder of libonnxruntime.so.1 and libonnxruntime.so, as it is installed beside this command, or as the
/// build has it. Throws `errc::io` where it is not.
std::filesystem::path library_folder() {
  const std::filesystem::path bin = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  for (const char* libraries : {TROUPE_LIBRARIES, "lib"}) {
    std::filesystem::path folder = (bin / ".." / libraries / "troupe/onnxruntime").lexically_normal();
    if (std::filesystem::exists(folder / "libonnxruntime.so.1"))
      return folder;
  }
  fail(errc::io, "libonnxruntime.so.1 is not beside this command: install the package libtroupe-onnxruntime");
}

/// Puts a path before those that a variable of the environment has.
void put_first(const char* variable, const std::string& path) {
  const char* others = std::getenv(variable);
  setenv(variable, others && *others ? (path + ":" + others).c_str() : path.c_str(), 1);
}

struct exec_options {
  std::string devices, hosts, policy, strategy, precision;
  std::vector<std::string> program;
};

/// Returns the names by which programs may ask for the library, to be loaded before they do: for those that have a path
/// of their own to another library (RPATH) and so do not look into LD_LIBRARY_PATH. What is loaded under a name, the
/// dynamic linker does not look for.
std::string names_of(const std::filesystem::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.insert(entry.path().filename().string());
  return fmt::format("{}", fmt::join(names, ":"));
}

[[noreturn]] void execute(const exec_options& o) {
  const std::filesystem::path folder = library_folder();
  put_first("LD_LIBRARY_PATH", folder.string());
  put_first("LD_PRELOAD", names_of(folder));
  for (const auto& [variable, value] : {std::pair{"TROUPE_DEVICES", &o.devices},
                                        {"TROUPE_HOSTS", &o.hosts},
                                        {"TROUPE_POLICY", &o.policy},
                                        {"TROUPE_STRATEGY", &o.strategy},
                                        {"TROUPE_PRECISION", &o.precision}})
    if (!value->empty())
      setenv(variable, value->c_str(), 1);
  std::vector<char*> words;
  for (const std::string& word : o.program)
    words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execvp(words[0], words.data());
  fail(errc::io, "{} cannot be started: {}", o.program[0], std::strerror(errno));
}

} // namespace

void add_exec(CLI::App& app) {
  auto options = std::make_shared<exec_options>();
  CLI::App* command =
      app.add_subcommand("exec", "Run a program that uses ONNX Runtime's library with troupe in the library's place");
  command->add_option("program", options->program, "The program and its arguments, after --")
      ->type_name("PROGRAM…")
      ->required();
  command->add_option("--devices", options->devices, "Devices, with commas between (default all)")
      ->type_name("DEVICES");
  command->add_option("--hosts", options->hosts, "Workers whose devices join, with commas between")
      ->type_name("[NAME=]HOST:PORT,…");
  command->add_option("--policy", options->policy, "How nodes are placed (default single)")->type_name("POLICY");
  command->add_option("--strategy", options->strategy, "How devices share the work (default standard)")
      ->type_name("STRATEGY");
  command->add_option("--precision", options->precision, "fp32 (default), fp16 or auto")->type_name("PRECISION");
  command->callback([options] { execute(*options); });
}

} // namespace troupe::cli
