#include "run/bound_state.hpp"

#include "base/error.hpp"
#include "device/resident.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

const device_tensor& bound_state::value(const std::string& output) const {
  const auto held = values_.find(output);
  if (held == values_.end())
    fail(errc::invalid_argument, "output '{}' {}", output,
         std::any_of(pairs_.begin(), pairs_.end(), [&](const output_binding& pair) { return pair.output == output; })
             ? "has no value yet: no run has ended well"
             : "is not bound");
  return held->second;
}

bool bound_state::begins_with(const named_tensors& inputs, const run_options& options) const {
  return std::all_of(pairs_.begin(), pairs_.end(), [&](const output_binding& pair) {
    return inputs.contains(pair.input) || options.device_inputs.contains(pair.input);
  });
}

void bound_state::add_to(const named_tensors& inputs, run_options& options) const {
  for (const output_binding& pair : pairs_) {
    if (std::find(options.keep.begin(), options.keep.end(), pair.output) == options.keep.end())
      options.keep.push_back(pair.output);
    if (inputs.contains(pair.input) || options.device_inputs.contains(pair.input))
      continue;
    const auto held = values_.find(pair.output);
    if (held == values_.end())
      fail(errc::invalid_input, "input '{}' is bound to output '{}': the first run needs its initial value", pair.input,
           pair.output);
    options.device_inputs[pair.input] = held->second;
  }
}

void bound_state::advance(const named_device_tensors& made) {
  for (const output_binding& pair : pairs_)
    values_[pair.output] = made.at(pair.output);
  ++step_;
}

void bound_state::begin(const named_device_tensors& made, named_device_tensors initial) {
  step_ = 0;
  copying_.reset();
  last_.reset();
  initial_.clear();
  next_copy_ = interval_;
  if (keeps_copies()) {
    checkpoint first;
    for (const auto& [input, value] : initial)
      if (value->host().defined())
        first.values[input] = value->host();
    if (first.values.size() == initial.size())
      last_ = std::move(first);
    else
      initial_ = std::move(initial);
  }
  advance(made);
}

named_device_tensors bound_state::begin_copy() {
  if (!keeps_copies() || is_copying())
    return {};
  if (!initial_.empty()) {
    copying_ = 0;
    return std::exchange(initial_, {});
  }
  if (step_ < next_copy_)
    return {};
  copying_ = step_;
  next_copy_ = step_ + interval_;
  named_device_tensors values;
  for (const output_binding& pair : pairs_)
    values[pair.input] = values_.at(pair.output);
  return values;
}

void bound_state::end_copy(named_tensors copies) {
  expects(is_copying(), "a copy that was not on its way has come");
  last_ = checkpoint{*copying_, std::move(copies)};
  copying_.reset();
}

bool bound_state::go_back() {
  if (!last_)
    return false;
  copying_.reset();
  step_ = last_->step;
  next_copy_ = step_ + interval_;
  for (const output_binding& pair : pairs_)
    values_[pair.output] = make_host_resident(last_->values.at(pair.input), "host");
  return true;
}

} // namespace troupe
