// Inputs that are on devices: checked before each attempt, and brought to the host if the plan wants them elsewhere.
#include "run/session_machine.hpp"

#include <algorithm>

namespace troupe {

size_t session_machine::home_of(const resident& value) const {
  size_t home = devices_.size();
  for (size_t d = 0; d < devices_.size(); ++d)
    if (devices_[d].name == value.device() && devices_[d].incarnation == value.incarnation() &&
        (home == devices_.size() || devices_[d].lost_because.empty()))
      home = d;
  return home;
}

void session_machine::check_request(run_request& request) const {
  plans_->check_kept(request.options.keep);
  check_residents(request);
}

void session_machine::check_residents(run_request& request) const {
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
    check_home(request, input, *value);
    ++it;
  }
  request.carried.for_each_given([&](size_t input, const carried_value& value) {
    if (!value.value()->has_host())
      check_home(request, plans_->inputs()[input].name, *value.handle());
  });
}

void session_machine::check_home(const run_request& request, const std::string& input, const resident& value) const {
  const size_t home = home_of(value);
  if (home == devices_.size())
    fail(errc::invalid_input, "input '{}' is on device '{}', which this engine does not have", input, value.device());
  if (const std::string& why = devices_[home].lost_because; !why.empty() && !request.inputs.contains(input))
    fail(errc::device_lost, "input '{}' lay on device '{}', which is lost ({}): give it anew", input, value.device(),
         why);
}

device_tensor session_machine::resident_of(const run_request& request, const std::string& input) const {
  if (const auto given = request.options.device_inputs.find(input); given != request.options.device_inputs.end())
    return given->second;
  device_tensor found;
  request.carried.for_each_given([&](size_t i, const carried_value& value) {
    if (plans_->inputs()[i].name == input && !value.value()->has_host())
      found = value.handle();
  });
  return found;
}

void session_machine::fetch_all(const run_request_ptr& request) {
  const failure why = capture([&] {
    check_residents(*request);
    std::vector<std::string> names;
    for (const auto& [input, value] : request->options.device_inputs)
      names.push_back(input);
    if (await_host_copies(request, names))
      return;
    run_result copies;
    copies.outputs = request->inputs;
    copies.stats = request->stats;
    answer(*request, std::move(copies));
  });
  if (why.failed())
    answer(*request, {}, why);
}

bool session_machine::await_host_copies(const run_request_ptr& request, const std::vector<std::string>& names) {
  fetching_run waiting{request, {}};
  for (const std::string& input : names)
    if (const device_tensor value = resident_of(*request, input); value && !request->inputs.contains(input)) {
      const size_t home = home_of(*value);
      waiting.awaited[input] = home;
      send(home, fetch_tensor{value, request->ticket, input});
    }
  if (waiting.awaited.empty())
    return false;
  fetching_.insert_or_assign(request->ticket, std::move(waiting));
  return true;
}

void session_machine::on(tensor_fetched& answer) {
  const auto found = fetching_.find(answer.ticket);
  if (found == fetching_.end() || !found->second.awaited.contains(answer.input))
    return; // of a run that has ended
  const run_request_ptr request = found->second.request;
  const size_t home = found->second.awaited.at(answer.input);
  fetch_result& result = answer.result;
  if (!result.ok() && result.code == errc::device_lost)
    return lose_device(home, result.message);
  if (!result.ok()) {
    end_fetching(answer.ticket, {result.code, fmt::format("device '{}' could not give input '{}' back: {}",
                                                          devices_[home].name, answer.input, result.message)});
    return;
  }
  request->stats.fetched_bytes += result.value.bytes();
  request->inputs[answer.input] = std::move(result.value);
  found->second.awaited.erase(answer.input);
  if (!found->second.awaited.empty())
    return;
  fetching_.erase(found);
  start_attempt(request);
}

bool session_machine::end_fetching(uint64_t ticket, const failure& why) {
  const auto found = fetching_.find(ticket);
  if (found == fetching_.end())
    return false;
  answer(*found->second.request, {}, why);
  fetching_.erase(found);
  return true;
}

bool session_machine::fetches_from(size_t device) const {
  return std::any_of(fetching_.begin(), fetching_.end(), [&](const auto& entry) {
    const auto& awaited = entry.second.awaited;
    return std::any_of(awaited.begin(), awaited.end(), [&](const auto& a) { return a.second == device; });
  });
}

std::vector<run_request_ptr> session_machine::take_fetching_from(size_t device) {
  std::vector<run_request_ptr> taken;
  for (auto it = fetching_.begin(); it != fetching_.end();) {
    const auto& awaited = it->second.awaited;
    const bool waits = std::any_of(awaited.begin(), awaited.end(), [&](const auto& a) { return a.second == device; });
    if (waits)
      taken.push_back(it->second.request);
    it = waits ? fetching_.erase(it) : std::next(it);
  }
  return taken;
}

} // namespace troupe
