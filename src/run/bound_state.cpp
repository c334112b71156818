#include "run/bound_state.hpp"

#include "base/error.hpp"
#include "device/resident.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

const device_tensor& bound_state::value(const std::string& output) const {
  const auto pair = std::ranges::find(pairs_, output, &output_binding::output);
  if (pair == pairs_.end())
    fail(errc::invalid_argument, "output '{}' is not bound", output);
  if (values_.empty())
    fail(errc::invalid_argument, "output '{}' has no value yet: no run has ended well", output);
  return values_[static_cast<size_t>(pair - pairs_.begin())];
}

bool bound_state::begins_with(const named_tensors& inputs, const run_options& options) const {
  return std::all_of(pairs_.begin(), pairs_.end(), [&](const output_binding& pair) {
    return inputs.contains(pair.input) || options.device_inputs.contains(pair.input);
  });
}

carried_values bound_state::carry(const named_tensors& inputs, const run_options& options) const {
  carried_values carried{.pairs = places_, .given = values_};
  carried.given.resize(pairs_.size());
  for (size_t i = 0; i < pairs_.size(); ++i)
    if (inputs.contains(pairs_[i].input) || options.device_inputs.contains(pairs_[i].input))
      carried.given[i] = nullptr;
    else if (values_.empty())
      fail(errc::invalid_input, "input '{}' is bound to output '{}': the first run needs its initial value",
           pairs_[i].input, pairs_[i].output);
  return carried;
}

void bound_state::advance(std::vector<device_tensor> made) {
  expects(made.size() == pairs_.size(), "a bound run has left another number of values than are bound");
  values_ = std::move(made);
  ++step_;
}

void bound_state::begin(std::vector<device_tensor> made, named_device_tensors initial) {
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
  advance(std::move(made));
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
  for (size_t i = 0; i < pairs_.size(); ++i)
    values[pairs_[i].input] = values_[i];
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
  for (size_t i = 0; i < pairs_.size(); ++i)
    values_[i] = make_host_resident(last_->values.at(pairs_[i].input), "host");
  return true;
}

} // namespace troupe
