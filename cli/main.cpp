// The `troupe` command.
#include "cli/command.hpp"

#include <cstdlib>
#include <iostream>
#include <unistd.h>

namespace {

/// Between two kernels OpenMP's threads should spin for tens of microseconds, no longer: pure sleeping costs a wake-up a kernel
/// (squeezenet1_1 9.1 ms against 6.3 on two cores), the default of milliseconds takes the cores from other actors' threads.
/// libgomp reads its settings only when it is loaded: set them and start again, once.
void arrange_short_spinning(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") || std::getenv("GOMP_SPINCOUNT"))
    return;
  setenv("GOMP_SPINCOUNT", "20000", 1);
  execv("/proc/self/exe", argv);
  // Without /proc the program runs on as it is, only slower.
}

} // namespace

int main(int argc, char** argv) {
  arrange_short_spinning(argv);
  CLI::App app{"troupe runs any ONNX model on all the devices you have.", "troupe"};
  app.require_subcommand(1);
  app.set_version_flag("--version", TROUPE_VERSION);
  troupe::cli::add_run(app);
  troupe::cli::add_test(app);
  troupe::cli::add_bench(app);
  troupe::cli::add_plan(app);
  troupe::cli::add_inspect(app);
  troupe::cli::add_verify(app);
  troupe::cli::add_profile(app);
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
