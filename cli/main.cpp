// The `troupe` command.
#include "cli/command.hpp"
#include "cli/listed_values.hpp"
#include "cli/number_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <poll.h>
#include <unistd.h>

namespace {

/// Two libraries read settings only when they are loaded: sets what the user has not, and starts again, once.
///
/// - OpenMP's threads, on which oneDNN's kernels run, should spin for tens of microseconds, no longer: the default of
///   milliseconds takes the cores from other threads.
/// - What one thread allocates, another frees: a run's values go from the caller to the device and back. Where each
///   thread keeps many freed pieces of a size, not seven, it seldom asks the others' heaps (a decode step of gpt2 with
///   48 bound values 20 µs less, beside an H100). With a thousand a small model's process is 1 MiB larger than with a
///   hundred, and that step no faster.
void arrange_libraries(char** argv) {
  const bool spins = std::getenv("OMP_WAIT_POLICY") || std::getenv("GOMP_SPINCOUNT");
  const bool keeps = std::getenv("GLIBC_TUNABLES");
  if (spins && keeps)
    return;
  if (!spins)
    setenv("GOMP_SPINCOUNT", "20000", 1);
  if (!keeps)
    setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=100", 1);
  execv("/proc/self/exe", argv);
  // Without /proc the program runs on as it is, only slower.
}

/// The subcommands, in the order of the help.
constexpr auto subcommands = std::to_array<std::pair<std::string_view, void (*)(CLI::App&)>>({
    {"run", troupe::cli::add_run},         {"test", troupe::cli::add_test},
    {"bench", troupe::cli::add_bench},     {"plan", troupe::cli::add_plan},
    {"inspect", troupe::cli::add_inspect}, {"diff", troupe::cli::add_diff},
    {"verify", troupe::cli::add_verify},   {"prepare", troupe::cli::add_prepare},
    {"profile", troupe::cli::add_profile}, {"simulate", troupe::cli::add_simulate},
    {"cluster", troupe::cli::add_cluster}, {"compare", troupe::cli::add_compare},
    {"devices", troupe::cli::add_devices}, {"worker", troupe::cli::add_worker},
    {"keys", troupe::cli::add_keys},       {"operators", troupe::cli::add_operators},
    {"exec", troupe::cli::add_exec},       {"trace", troupe::cli::add_trace},
    {"replay", troupe::cli::add_replay},   {"completion", troupe::cli::add_completion},
});

/// Adds the subcommand that is called, since the options of all take half a megabyte. Adds all of them for an unknown
/// name, and for `completion`, which knows all.
void add_subcommands(CLI::App& app, std::string_view called) {
  const bool is_one = std::any_of(subcommands.begin(), subcommands.end(), [&](auto& s) { return s.first == called; });
  for (const auto& [name, add] : subcommands)
    if (!is_one || name == called || called == "completion")
      add(app);
}

/// Says which subcommand was not found, and which one is alike; CLI11 would only say that one is missing.
void check_subcommand(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-')
    return;
  const std::string given = argv[1];
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr))
    names.push_back(command->get_name());
  if (std::find(names.begin(), names.end(), given) != names.end())
    return;
  const std::string nearest = troupe::cli::nearest_name(names, given);
  troupe::fail(troupe::errc::invalid_argument, "there is no subcommand '{}'{}; they are: {}", given,
               nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest), fmt::join(names, ", "));
}

int run(int argc, char** argv) {
  arrange_libraries(argv);
  CLI::App app{"troupe runs any ONNX model on all the devices you have.", "troupe"};
  troupe::cli::arrange_help(app); // subcommands take it over
  app.require_subcommand(1);
  app.set_version_flag("--version", TROUPE_VERSION);
  add_subcommands(app, argc > 1 ? argv[1] : "");
  troupe::cli::require_numbers(app);
  try {
    check_subcommand(app, argc, argv);
    std::vector<std::string> words = troupe::cli::repeat_options({argv + 1, argv + argc});
    std::reverse(words.begin(), words.end()); // as CLI11 takes them
    app.parse(std::move(words));
    return EXIT_SUCCESS;
  } catch (const CLI::RuntimeError& e) {
    return e.get_exit_code();
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == EXIT_SUCCESS ? EXIT_SUCCESS : 2;
  } catch (const troupe::error& e) {
    std::cerr << "troupe: " << e.what() << '\n';
    if (e.code() == troupe::errc::cancelled) // by Ctrl-C
      return 130;
    return e.code() == troupe::errc::invalid_argument ? 2 : EXIT_FAILURE;
  } catch (const std::exception& e) {
    std::cerr << "troupe: " << e.what() << '\n';
    return EXIT_FAILURE;
  }
}

/// Returns whether all of the output has been written; says on stderr that it has not, unless its reader has gone, as
/// `head` does.
bool is_printed() {
  errno = 0;
  std::cout.flush();
  if (std::fflush(stdout) == 0 && std::cout.good() && std::ferror(stdout) == 0)
    return true;
  const std::string why = errno != 0 ? std::string(": ") + std::strerror(errno) : ""; // 0: an earlier write failed
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  if (poll(&out, 1, 0) < 1 || (out.revents & POLLERR) == 0)
    std::cerr << "troupe: the output cannot be written" << why << '\n';
  return false;
}

} // namespace

int main(int argc, char** argv) {
  if (troupe::tries_gpu_peers(std::vector<std::string>(argv + 1, argv + argc)))
    return EXIT_SUCCESS;
  const int status = run(argc, argv);
  return is_printed() ? status : std::max(status, EXIT_FAILURE);
}
