#include "base/error.hpp"
#include "troupe/session.hpp"

#include <algorithm>
#include <mutex>

namespace troupe {

struct bound_session::state {
  state(session s, std::vector<output_binding> p) : model(std::move(s)), pairs(std::move(p)) {}

  const session model;
  const std::vector<output_binding> pairs;
  std::mutex running;          // held by a run, so that runs go one after the other
  std::mutex mutex;            // guards `values`
  named_device_tensors values; // by output
};

bound_session::bound_session(session model, std::vector<output_binding> pairs)
    : state_(std::make_shared<state>(std::move(model), std::move(pairs))) {}

run_result bound_session::run(named_tensors inputs, run_options options) {
  const std::lock_guard one(state_->running);
  const std::vector<std::string> asked = options.keep;
  for (const output_binding& pair : state_->pairs) {
    if (std::find(asked.begin(), asked.end(), pair.output) == asked.end())
      options.keep.push_back(pair.output);
    if (inputs.contains(pair.input) || options.device_inputs.contains(pair.input))
      continue;
    const std::lock_guard lock(state_->mutex);
    const auto held = state_->values.find(pair.output);
    if (held == state_->values.end())
      fail(errc::invalid_input, "input '{}' is bound to output '{}': the first run needs its initial value", pair.input,
           pair.output);
    options.device_inputs[pair.input] = held->second;
  }
  run_result result = state_->model.run(std::move(inputs), options);
  const std::lock_guard lock(state_->mutex);
  for (const output_binding& pair : state_->pairs) {
    const auto kept = result.kept.find(pair.output);
    state_->values[pair.output] = kept->second;
    if (std::find(asked.begin(), asked.end(), pair.output) == asked.end())
      result.kept.erase(kept);
  }
  return result;
}

tensor bound_session::fetch(const std::string& output) const {
  device_tensor value;
  {
    const std::lock_guard lock(state_->mutex);
    const auto held = state_->values.find(output);
    if (held == state_->values.end())
      fail(errc::invalid_argument, "output '{}' {}", output,
           std::any_of(state_->pairs.begin(), state_->pairs.end(),
                       [&](const output_binding& pair) { return pair.output == output; })
               ? "has no value yet: no run has ended well"
               : "is not bound");
    value = held->second;
  }
  return state_->model.fetch(value);
}

} // namespace troupe
