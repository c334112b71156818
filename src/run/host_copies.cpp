#include "run/host_copies.hpp"

#include <algorithm>

namespace troupe {

void host_copies::check(run_request& request) const {
  const auto check_home = [&](const std::string& input, const resident& value) {
    devices_.home_of(value, input, request.inputs.contains(input));
  };
  named_device_tensors& residents = request.options.device_inputs;
  for (auto it = residents.begin(); it != residents.end();) {
    const auto& [input, value] = *it;
    if (!value)
      fail(errc::invalid_input, "input '{}' is given, but holds no tensor", input);
    if (value->host().defined()) { // an ordinary input
      request.inputs.emplace(input, value->host());
      it = residents.erase(it);
      continue;
    }
    check_home(input, *value);
    ++it;
  }
  request.carried.for_each_given([&](size_t input, const carried_value& value) {
    if (!value.value()->has_host())
      check_home(plans_.known_model().inputs[input].name, *value.handle());
  });
}

device_tensor host_copies::resident_of(const run_request& request, const std::string& input) const {
  if (const auto given = request.options.device_inputs.find(input); given != request.options.device_inputs.end())
    return given->second;
  device_tensor found;
  request.carried.for_each_given([&](size_t i, const carried_value& value) {
    if (plans_.known_model().inputs[i].name == input && !value.value()->has_host())
      found = value.handle();
  });
  return found;
}

bool host_copies::ask(const run_request_ptr& request, const std::vector<std::string>& names) {
  waiting_run waiting{request, {}};
  for (const std::string& input : names)
    if (const device_tensor value = resident_of(*request, input); value && !request->inputs.contains(input)) {
      const size_t home = devices_.home_of(*value, input, true); // which has been checked
      waiting.awaited[input] = home;
      commands_.push_back(device_order{home, fetch_tensor{value, request->ticket, input}});
    }
  if (waiting.awaited.empty())
    return false;
  waiting_.insert_or_assign(request->ticket, std::move(waiting));
  return true;
}

std::optional<size_t> host_copies::source_of(const tensor_fetched& answer) const {
  const auto found = waiting_.find(answer.ticket);
  if (found == waiting_.end())
    return std::nullopt;
  const auto awaited = found->second.awaited.find(answer.input);
  return awaited == found->second.awaited.end() ? std::nullopt : std::optional(awaited->second);
}

run_request_ptr host_copies::take(tensor_fetched& answer) {
  const auto found = waiting_.find(answer.ticket);
  run_request_ptr request = found->second.request;
  request->stats.fetched_bytes += answer.result.value.bytes();
  // With the run's inputs, so that an attempt on other devices needs no second copy.
  request->inputs[answer.input] = std::move(answer.result.value);
  found->second.awaited.erase(answer.input);
  if (!found->second.awaited.empty())
    return nullptr;
  waiting_.erase(found);
  return request;
}

bool host_copies::are_awaited_from(size_t device) const {
  return std::ranges::any_of(waiting_, [&](const auto& entry) { return entry.second.waits_for(device); });
}

std::vector<run_request_ptr> host_copies::forget_device(size_t device) {
  std::vector<run_request_ptr> runs;
  std::erase_if(waiting_, [&](const auto& entry) {
    const bool goes = entry.second.waits_for(device);
    if (goes)
      runs.push_back(entry.second.request);
    return goes;
  });
  return runs;
}

} // namespace troupe
