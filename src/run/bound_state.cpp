#include "run/bound_state.hpp"

#include "base/error.hpp"
#include "device/resident.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

bound_state::bound_state(std::vector<output_binding> pairs, std::vector<carried_pair> places, uint64_t interval,
                         int64_t log_bytes)
    : pairs_(std::move(pairs)), places_(std::make_shared<const std::vector<carried_pair>>(std::move(places))),
      interval_(interval), log_(log_bytes) {
  for (size_t i = 0; i < pairs_.size(); ++i)
    pair_of_.emplace(pairs_[i].input, i);
}

const device_tensor& bound_state::value(const std::string& output) const {
  const auto pair = std::ranges::find(pairs_, output, &output_binding::output);
  if (pair == pairs_.end())
    fail(errc::invalid_argument, "output '{}' is not bound", output);
  if (!values_)
    fail(errc::invalid_argument, "output '{}' has no value yet: no run has ended well", output);
  return (*values_)[static_cast<size_t>(pair - pairs_.begin())].handle();
}

std::vector<size_t> bound_state::pairs_given(const named_tensors& inputs, const run_options& options) const {
  std::vector<size_t> given;
  const auto add = [&](const std::string& input) {
    if (const auto pair = pair_of_.find(input); pair != pair_of_.end())
      given.push_back(pair->second);
  };
  for (const auto& [input, value] : inputs)
    add(input);
  for (const auto& [input, value] : options.device_inputs)
    if (!inputs.contains(input))
      add(input);
  return given;
}

bool bound_state::begins_with(const named_tensors& inputs, const run_options& options) const {
  return pairs_given(inputs, options).size() == pairs_.size();
}

carried_values bound_state::carry(const named_tensors& inputs, const run_options& options) const {
  const std::vector<size_t> given = pairs_given(inputs, options);
  if (values_ && given.empty())
    return {.pairs = places_, .given = values_};
  std::vector<carried_value> rest = values_ ? *values_ : std::vector<carried_value>(pairs_.size());
  std::vector<bool> is_given(pairs_.size());
  for (const size_t i : given) {
    rest[i] = {};
    is_given[i] = true;
  }
  if (const auto missing = std::ranges::find(is_given, false); !values_ && missing != is_given.end()) {
    const output_binding& pair = pairs_[static_cast<size_t>(missing - is_given.begin())];
    fail(errc::invalid_input, "input '{}' is bound to output '{}': the first run needs its initial value", pair.input,
         pair.output);
  }
  return {.pairs = places_, .given = std::make_shared<const std::vector<carried_value>>(std::move(rest))};
}

carried_bundle bound_state::advance(carried_bundle made, std::optional<kept_step> step) {
  expects(made->size() == pairs_.size(), "a bound run has left another number of values than are bound");
  ++step_;
  if (step)
    log_.add(std::move(*step));
  return std::exchange(values_, std::move(made));
}

carried_bundle bound_state::begin(carried_bundle made, named_device_tensors initial, std::optional<kept_step> step) {
  step_ = 0;
  copying_.reset();
  last_.reset();
  initial_.clear();
  log_.begin(1);
  next_copy_ = initial.empty() ? 1 : step_after_interval();
  checkpoint first;
  for (const auto& [input, value] : initial)
    if (value->host().defined())
      first.values[input] = value->host();
  if (first.values.size() < initial.size())
    initial_ = std::move(initial);
  else if (!initial.empty())
    last_ = std::move(first);
  return advance(std::move(made), std::move(step));
}

uint64_t bound_state::step_after_interval() const {
  return has_interval() ? step_ + interval_ : std::numeric_limits<uint64_t>::max();
}

named_device_tensors bound_state::begin_copy() {
  if (!keeps_copies() || is_copying())
    return {};
  if (!initial_.empty()) {
    copying_ = 0;
    return std::exchange(initial_, {});
  }
  if (step_ < next_copy_ && !log_.is_full())
    return {};
  copying_ = step_;
  next_copy_ = step_after_interval();
  named_device_tensors values;
  for (size_t i = 0; i < pairs_.size(); ++i)
    values[pairs_[i].input] = (*values_)[i].handle();
  return values;
}

void bound_state::end_copy(named_tensors copies) {
  expects(is_copying(), "a copy that was not on its way has come");
  last_ = checkpoint{*copying_, std::move(copies)};
  copying_.reset();
  log_.forget_through(last_->step);
}

bool bound_state::go_back() {
  if (!last_)
    return false;
  copying_.reset();
  step_ = last_->step;
  next_copy_ = step_after_interval();
  std::vector<carried_value> values;
  for (const output_binding& pair : pairs_)
    values.emplace_back(make_host_resident(last_->values.at(pair.input), "host"));
  values_ = std::make_shared<const std::vector<carried_value>>(std::move(values));
  return true;
}

} // namespace troupe
