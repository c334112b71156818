// Steps of a model whose outputs are inputs of its next run, such as a decoder: `--bind` of bench and run.
#pragma once

#include "cli/command.hpp"

namespace troupe::cli {

/// Returns what `--bind` asks for; a '*' on both sides matches the same text.
std::vector<output_binding> read_bindings(const std::vector<std::string>& specs,
                                          const std::vector<value_info>& outputs);

struct decode_options {
  std::vector<std::string> bind; // "OUT=IN"; empty: no steps
  uint64_t steps = 1;
  std::vector<std::string> grow; // "total=1"
  uint64_t checkpoint = 0;
};

/// The steps of one decoder: what each is given, and takes along.
class decoder {
public:
  decoder(const session& model, const model_options& args, const decode_options& options);

  uint64_t steps_taken() const { return bound_.step(); }
  /// Returns the inputs of the step after those taken; the bound ones only of the first.
  named_tensors next_inputs() const;
  /// Takes a step.
  run_result step(named_tensors inputs, run_options how);
  /// The same, at the second step at the earliest, if the bound dims grow by as much as the last time: the values need
  /// not be looked at then.
  run_result even_step(named_tensors inputs, const run_options& how);
  /// Adds the bound outputs.
  void fetch_bound(named_tensors& outputs) const;

private:
  const output_binding* find_pair(std::string output_binding::*end, const std::string& name) const;
  /// Takes over the symbols' values that an input has if it is `value`.
  void add_dims(const resident& value, const std::string& input, bindings& dims) const;

  const session& model_;
  const model_options& args_;
  const std::vector<output_binding> pairs_;
  bound_session bound_;
  const named_tensors given_;
  const bindings growth_;
  std::vector<bindings> dims_; // by steps taken: of the next one
};

/// Adds `--bind`, `--steps`, `--grow`, `--checkpoint`.
void add_decode_options(CLI::App& command, decode_options& options);

struct decoded {
  run_result last;                     // bound outputs among the outputs
  named_tensors first_inputs;          // of the first step
  std::vector<double> step_ms;         // of all steps, those repeated twice
  std::vector<uint64_t> repeated_from; // steps, where the session could not repeat them itself
  uint64_t repeated_steps = 0;         // by the session
};

/// Runs the model step by step. Inputs that are not bound are those of `--input` in each step, else made up afresh,
/// with dims as the bound ones have them by then. If bound values are lost with a device, says so on stderr. Steps that
/// the session cannot repeat itself are repeated here from the last checkpoint; throws `errc::device_lost` if there is
/// none. `how`: of each step; `how.trace` of the last.
decoded decode(const engine& devices, const session& model, const model_options& args, const decode_options& options,
               const run_options& how);

} // namespace troupe::cli
