// troupe prepare: compiles a GPU's kernels for sizes that are to come, so that no later process waits for them.
#include "cli/command.hpp"
#include "cli/progress.hpp"
#include "cli/size_range.hpp"
#include "cli/strategy_options.hpp"

#include "base/checked.hpp"
#include "base/elapsed.hpp"

#include <fmt/format.h>

namespace troupe::cli {
namespace {

constexpr int64_t most_sizes = 10'000;

struct prepare_arguments : model_options {
  std::vector<std::string> sizes; // "batch=1..64/2"
};

/// Returns every combination of the ranges' values with `others`, the largest first: these decide what memory is taken.
std::vector<bindings> sizes_of(const std::vector<std::string>& texts, const bindings& others) {
  std::vector<bindings> all{others};
  for (const std::string& text : texts) {
    const size_range r = parse_range(text, "--sizes");
    if (checked_mul(static_cast<int64_t>(all.size()), r.count()) > most_sizes)
      fail(errc::invalid_argument, "--sizes asks for more than {} sizes; take larger steps", most_sizes);
    std::vector<bindings> longer;
    for (const bindings& b : all)
      for (int64_t i = r.count() - 1; i >= 0; --i) {
        longer.push_back(b);
        longer.back()[r.name] = r.first + i * r.step;
      }
    all = std::move(longer);
  }
  return all;
}

void prepare_model(const prepare_arguments& args) {
  const interrupts stop;
  const auto start = std::chrono::steady_clock::now();
  const std::vector<bindings> sizes = sizes_of(args.sizes, args.dim_values());
  size_t done = 0;
  {
    engine devices(args.engine()); // compiled kernels are written when it ends
    const session model = open_model(devices, args);
    check_dims(sizes.front(), model.inputs(), "--sizes");
    progress line("prepare", args.shows_progress());
    for (const bindings& dims : sizes) {
      if (stop.requested())
        break;
      model.run(complete_inputs(model.inputs(), {}, dims, args.seed), {.cancel = stop.token()});
      line.show(static_cast<double>(++done), static_cast<double>(sizes.size()), "sizes");
    }
  }
  const double seconds = milliseconds_since(start) / 1e3;
  if (args.json)
    write_json(nlohmann::ordered_json{{"sizes", done}, {"seconds", seconds}});
  else
    fmt::print("{} size{} prepared in {:.1f} s\n", done, done == 1 ? "" : "s", seconds);
  stop.exit_if_requested();
}

} // namespace

void add_prepare(CLI::App& app) {
  auto args = std::make_shared<prepare_arguments>();
  args->kernels = kernel_time::now;
  CLI::App* command = app.add_subcommand("prepare", "Run a model on made-up inputs of sizes that are to come, so that "
                                                    "GPUs' kernels for them are compiled and kept");
  add_model_options(*command, *args);
  add_strategy_options(*command, *args);
  command->option_defaults()->group("Options");
  command
      ->add_option("--sizes", args->sizes,
                   "Sizes of a symbolic dim, e.g. batch=1..64 or width=320..960/32; of several dims, all combinations")
      ->type_name("NAME=FIRST..LAST/STEP")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->callback([args] { prepare_model(*args); });
}

} // namespace troupe::cli
