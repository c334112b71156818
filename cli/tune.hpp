// Measures which kernels are the fastest for a model's calls on each GPU, through the engine's public interface.
#pragma once

#include "cli/command.hpp"
#include "cli/progress.hpp"
#include "measure/tuning.hpp"

namespace troupe::cli {

/// What was found on one GPU.
struct tuned_device {
  std::string name;
  profile_key device;
  std::vector<tunable_call> calls;
  tuning found;
  double seconds = 0; // that it took
};

/// Tunes the model of `args` on each different GPU of its engine, up to `budget_s` seconds on each and then a round.
/// Without regard to what was chosen earlier. GPUs that cannot run the model are left out, with a line on stderr; if
/// all are, or there is none, throws `errc::unsupported`. After `stop` it returns the GPUs that are done.
std::vector<tuned_device> tune_model(const model_options& args, double budget_s, const interrupts& stop);

/// Prints calls, kernels and times, and what the model gains.
void print_tuned(const std::vector<tuned_device>& tuned);
nlohmann::json tuned_json(const std::vector<tuned_device>& tuned);

} // namespace troupe::cli
