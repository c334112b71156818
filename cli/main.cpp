// The `troupe` command.
#include "cli/command.hpp"

#include <cstdlib>
#include <iostream>
#include <unistd.h>

namespace {

/// OpenMP's threads must not spin while other actors' threads want the cores, and libgomp reads this setting only when it is
/// loaded: set it and start again, once.
void arrange_passive_waiting(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") || std::getenv("GOMP_SPINCOUNT"))
    return;
  setenv("OMP_WAIT_POLICY", "passive", 1);
  execv("/proc/self/exe", argv);
  // Without /proc the program runs on as it is, only slower.
}

} // namespace

int main(int argc, char** argv) {
  arrange_passive_waiting(argv);
  CLI::App app{"troupe runs any ONNX model on all the devices you have.", "troupe"};
  app.require_subcommand(1);
  app.set_version_flag("--version", TROUPE_VERSION);
  troupe::cli::add_run(app);
  troupe::cli::add_test(app);
  troupe::cli::add_bench(app);
  troupe::cli::add_plan(app);
  troupe::cli::add_devices(app);
  troupe::cli::add_operators(app);
  try {
    app.parse(argc, argv);
    return EXIT_SUCCESS;
  } catch (const CLI::RuntimeError& e) {
    return e.get_exit_code();
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == EXIT_SUCCESS ? EXIT_SUCCESS : 2;
  } catch (const troupe::error& e) {
    std::cerr << "troupe: " << e.what() << '\n';
    return e.code() == troupe::errc::invalid_argument ? 2 : EXIT_FAILURE;
  } catch (const std::exception& e) {
    std::cerr << "troupe: " << e.what() << '\n';
    return EXIT_FAILURE;
  }
}
