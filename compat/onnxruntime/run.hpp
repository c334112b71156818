// Runs: values in and out, by name.
#pragma once

#include "compat/onnxruntime/run_options.hpp"
#include "compat/onnxruntime/session.hpp"
#include "compat/onnxruntime/value.hpp"

#include <semaphore>

namespace troupe::ort {

/// Names and the values that go with them, as clients give both. A null value of an output is made by the run.
struct named_values {
  const char* const* names;
  const OrtValue* const* values;
  size_t count;
};

/// The inputs of one run, over the client's memory. Devices may read them a moment after a run that was ended early has
/// said so: `wait` returns when none does any more.
class loan {
public:
  /// Throws ORT_INVALID_ARGUMENT for names that the model has not, and values that cannot be inputs.
  loan(const OrtSession& session, const named_values& inputs);

  const named_tensors& tensors() const { return tensors_; }
  /// Lets go of the inputs, and waits until all others have; a minute at most, which the client's log hears of.
  void wait(const log_sink& sink);

private:
  /// Adds an input that is a map: two of troupe's.
  void add_map(const std::string& name, const OrtValue* value, const map_types& types);

  std::shared_ptr<std::binary_semaphore> returned_ = std::make_shared<std::binary_semaphore>(0);
  named_tensors tensors_;
};

/// Returns how troupe does such a run.
run_options options_of(const OrtSession& session, const OrtRunOptions* options);

/// Throws ORT_INVALID_ARGUMENT, naming it, for an output that the model has not.
void check_outputs(const OrtSession& session, const char* const* names, size_t count);

/// Returns the values of outputs by name, in memory that is the client's alone: values that are an input, or another
/// output, or the session's own are copied.
std::vector<OrtValue> take_outputs(const OrtSession& session, const named_tensors& inputs, const run_result& result,
                                   const char* const* names, size_t count);

/// Puts a value into one that the client made before: its memory stays, and gets the bytes. Throws ORT_INVALID_ARGUMENT
/// where kind, type or shape differ.
void fill(OrtValue& target, const OrtValue& made, const char* name);

/// Adds the trace to the profiles that want it: the session's, and that of a run for which the client said how files
/// begin.
void add_profile(const OrtSession& session, const std::optional<std::string>& run_prefix, const run_result& result,
                 std::chrono::steady_clock::time_point begin);

/// Runs the model and returns the outputs of these names. Throws what troupe throws.
std::vector<OrtValue> run_model(const OrtSession& session, const OrtRunOptions* options, const named_values& inputs,
                                const char* const* names, size_t count);

} // namespace troupe::ort
