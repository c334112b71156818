#include "actors/session_state.hpp"
#include "base/error.hpp"
#include "base/shared_work.hpp"
#include "run/bound_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

namespace troupe {
namespace {

/// Returns the devices in whose memory values of the state were, and which are lost, in words; empty if there are none,
/// or no device is left.
std::string describe_losses(const bound_state& values, const std::vector<actors::device_handle>& devices) {
  const auto lives = [](const actors::device_handle& d) { return !d.health->lost; };
  std::vector<std::string> lost;
  for (const output_binding& pair : values.pairs()) {
    const device_tensor& value = values.value(pair.output);
    if (value->host().defined() ||
        std::any_of(devices.begin(), devices.end(), [&](const auto& d) { return lives(d) && is_on(*value, d.info); }))
      continue;
    const auto home =
        std::find_if(devices.begin(), devices.end(), [&](const auto& d) { return is_on(*value, d.info); });
    const std::string why = home != devices.end() ? home->health->because("") : "";
    if (auto text = fmt::format("'{}'{}{}", value->device(), why.empty() ? "" : ": ", why);
        std::find(lost.begin(), lost.end(), text) == lost.end())
      lost.push_back(std::move(text));
  }
  return std::any_of(devices.begin(), devices.end(), lives) ? fmt::format("{}", fmt::join(lost, ", ")) : "";
}

/// Returns the bound inputs that a run is given, where they are.
named_device_tensors bound_inputs(const std::vector<output_binding>& pairs, const named_tensors& inputs,
                                  const run_options& options) {
  named_device_tensors given;
  for (const output_binding& pair : pairs)
    if (const auto on_host = inputs.find(pair.input); on_host != inputs.end())
      given[pair.input] = make_host_resident(on_host->second, "host");
    else
      given[pair.input] = options.device_inputs.at(pair.input);
  return given;
}

bound_state state_of(const model& m, std::vector<output_binding> pairs, uint64_t interval) {
  std::vector<carried_pair> places = check_bindings(m, pairs);
  return {std::move(pairs), std::move(places), interval};
}

} // namespace

struct bound_session::state {
  state(session s, std::vector<output_binding> pairs, const bind_options& options)
      : model(std::move(s)), values(state_of(*model.state_->model, std::move(pairs), options.checkpoint)) {}

  /// Takes a copy that has come; throws why there is none unless a device was lost.
  void collect_copy();
  void start_copy();
  /// After `errc::device_lost`: goes back to the last copy and throws that it did, if values were lost, and there is a
  /// copy and a device left for it.
  void go_back();

  const session model;
  std::mutex running;           // held by a run, so that runs go one after the other; guards `copy`
  std::future<run_result> copy; // valid if one is on its way
  mutable std::mutex mutex;     // guards `values`
  bound_state values;
};

void bound_session::state::collect_copy() {
  if (!copy.valid() || copy.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
    return;
  const std::lock_guard lock(mutex);
  try {
    values.end_copy(copy.get().outputs);
  } catch (const error& e) {
    values.drop_copy();
    if (e.code() != errc::device_lost)
      fail(e.code(), "the last checkpoint could not be made: {}", e.what());
  }
}

void bound_session::state::start_copy() {
  if (named_device_tensors due = values.begin_copy(); !due.empty())
    copy = model.fetch_async(std::move(due));
}

void bound_session::state::go_back() {
  const failure copying = capture([&] { collect_copy(); }); // whatever it says, the one before is there
  const std::lock_guard lock(mutex);
  const std::string lost = describe_losses(values, *model.state_->runtime->devices().devices());
  if (lost.empty() || !values.go_back())
    return;
  copy = {};
  throw state_rolled_back(
      fmt::format("bound values were on a device that is lost ({}); they are those of step {} again: "
                  "repeat from step {}",
                  lost, values.step(), values.step() + 1),
      values.step() + 1);
}

bound_session::bound_session(session model, std::vector<output_binding> pairs, const bind_options& options)
    : state_(std::make_shared<state>(std::move(model), std::move(pairs), options)) {}

run_result bound_session::run(named_tensors inputs, run_options options) {
  const std::lock_guard one(state_->running);
  state_->collect_copy();
  bound_state& values = state_->values;
  const bool begins = values.begins_with(inputs, options);
  carried_values carried;
  {
    const std::lock_guard lock(state_->mutex);
    carried = values.carry(inputs, options);
  }
  named_device_tensors initial;
  if (begins && values.keeps_copies())
    initial = bound_inputs(values.pairs(), inputs, options);
  carried_bundle made;
  run_result result;
  try {
    result = state_->model.state_->run(std::move(inputs), std::move(options), std::move(carried), made);
  } catch (const error& e) {
    // A run that was given all bound inputs does not depend on lost values.
    if (!begins && e.code() == errc::device_lost)
      state_->go_back();
    throw;
  }
  carried_bundle before;
  {
    const std::lock_guard lock(state_->mutex);
    if (begins) {
      state_->copy = {};
      before = values.begin(std::move(made), std::move(initial));
    } else {
      before = values.advance(std::move(made));
    }
    state_->start_copy();
  }
  let_go(std::move(before)); // a decoder's are many, made by other threads
  return result;
}

tensor bound_session::fetch(const std::string& output) const {
  device_tensor value;
  {
    const std::lock_guard lock(state_->mutex);
    value = state_->values.value(output);
  }
  try {
    return state_->model.fetch(value);
  } catch (const error& e) {
    if (e.code() == errc::device_lost) {
      const std::lock_guard one(state_->running);
      state_->go_back();
    }
    throw;
  }
}

uint64_t bound_session::step() const {
  const std::lock_guard lock(state_->mutex);
  return state_->values.step();
}

} // namespace troupe
