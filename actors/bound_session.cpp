#include "actors/session_state.hpp"
#include "base/error.hpp"
#include "base/shared_work.hpp"
#include "run/bound_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
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

/// Returns the bound inputs that a run is given: those on the host copied, if they have at most `limit` bytes, else
/// none at all.
named_device_tensors bound_inputs(const std::vector<output_binding>& pairs, const named_tensors& inputs,
                                  const run_options& options, int64_t limit) {
  named_device_tensors given;
  for (const output_binding& pair : pairs) {
    const auto on_host = inputs.find(pair.input);
    if (on_host == inputs.end()) {
      given[pair.input] = options.device_inputs.at(pair.input);
    } else if ((limit -= on_host->second.bytes()) < 0) {
      return {};
    } else {
      given[pair.input] = make_host_resident(copied(on_host->second), "host");
    }
  }
  return given;
}

/// Returns what a step is given, to be kept, if it has at most `most` bytes. One that begins the state anew is repeated
/// on its first checkpoint, without its bound inputs.
kept_step keep_step(const std::vector<output_binding>& pairs, const named_tensors& inputs,
                    const named_device_tensors& device_inputs, bool begins, int64_t most) {
  const auto is_kept = [&](const std::string& name) {
    return !begins || std::ranges::find(pairs, name, &output_binding::input) == pairs.end();
  };
  kept_step kept;
  for (const auto& [name, value] : inputs)
    if (is_kept(name)) {
      if ((most -= value.bytes()) < 0)
        return {.inputs = inputs, .is_left_out = true}; // for this call alone
      kept.inputs.emplace(name, copied(value));
    }
  for (const auto& [name, value] : device_inputs)
    if (is_kept(name))
      kept.device_inputs.emplace(name, value);
  return kept;
}

/// Returns what is left of a run's time; zero: it has no limit.
std::chrono::milliseconds left_of(std::chrono::milliseconds timeout, std::chrono::steady_clock::time_point start) {
  if (timeout.count() <= 0)
    return timeout;
  const auto taken = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start);
  return std::max(timeout - taken, std::chrono::milliseconds(1));
}

bound_state state_of(const model& m, std::vector<output_binding> pairs, const bind_options& options) {
  if (options.heal_bytes < 0)
    fail(errc::invalid_argument, "bind_options::heal_bytes is negative: {}", options.heal_bytes);
  std::vector<carried_pair> places = check_bindings(m, pairs);
  return {std::move(pairs), std::move(places), options.checkpoint, options.heal ? options.heal_bytes : 0};
}

} // namespace

struct bound_session::state {
  state(session s, std::vector<output_binding> pairs, const bind_options& options)
      : model(std::move(s)), values(state_of(*model.state_->model, std::move(pairs), options)) {}

  /// Takes a step; if a device with the state is lost, first those again that are lost with it.
  run_result step(named_tensors inputs, run_options options);
  /// Takes steps again that the caller has taken and the state has lost.
  void catch_up(const run_options& limits);
  /// After `loss`: goes back to the last copy, if values are lost; the steps since are owed then. Throws `loss` if no
  /// values are, or there is no copy or device left; `state_rolled_back` if the steps are not kept.
  void go_back(const error& loss);
  /// Returns the last step that the caller has taken.
  uint64_t steps_taken() const;

  const session model;
  std::mutex running;       // held by a run, so that runs go one after the other; guards what follows
  mutable std::mutex mutex; // guards `values` and `owed` against readers beside a run
  bound_state values;
  uint64_t owed = 0; // the last step that the caller has taken, if the state is one before

private:
  /// Takes a copy that has come; throws why there is none, unless a device was lost or the caller asked for none.
  void collect_copy();
  void start_copy();
  /// Runs the model on the state; takes `kept` if that ends well. Null: the run repeats a step that is kept already.
  run_result take(named_tensors inputs, run_options options, kept_step* kept);
  /// Leaves the steps since the last copy, whose values these are, to the caller.
  [[noreturn]] void give_up(const std::string& why);

  std::future<run_result> copy_; // valid if one is on its way
  std::string lost_;             // devices whose values were lost last, in words
  uint64_t repeated_ = 0;        // steps, since the last answer
};

void bound_session::state::collect_copy() {
  if (!copy_.valid() || copy_.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
    return;
  const std::lock_guard lock(mutex);
  try {
    values.end_copy(copy_.get().outputs);
  } catch (const error& e) {
    values.drop_copy();
    if (e.code() == errc::device_lost)
      return;
    if (values.has_interval())
      fail(e.code(), "the last checkpoint could not be made: {}", e.what());
    values.forget_later_steps(); // there is no room for them without it
  }
}

void bound_session::state::start_copy() {
  if (named_device_tensors due = values.begin_copy(); !due.empty())
    copy_ = model.fetch_async(std::move(due));
}

uint64_t bound_session::state::steps_taken() const {
  const std::lock_guard lock(mutex);
  return std::max(values.step(), owed);
}

run_result bound_session::state::take(named_tensors inputs, run_options options, kept_step* kept) {
  const bool begins = values.begins_with(inputs, options);
  carried_values carried;
  {
    const std::lock_guard lock(mutex);
    carried = values.carry(inputs, options);
  }
  named_device_tensors initial;
  if (begins && values.keeps_copies())
    initial = bound_inputs(values.pairs(), inputs, options, values.most_initial_bytes());
  carried_bundle made, before;
  run_result result = model.state_->run(std::move(inputs), std::move(options), std::move(carried), made);
  if (kept && values.log().keeps_steps())
    kept->answers = samples_of(result.outputs);
  {
    const std::lock_guard lock(mutex);
    std::optional<kept_step> step;
    if (kept)
      step = std::move(*kept);
    if (begins) {
      copy_ = {};
      owed = 0;
      before = values.begin(std::move(made), std::move(initial), std::move(step));
    } else {
      before = values.advance(std::move(made), std::move(step));
    }
    if (kept)
      start_copy();
  }
  let_go(std::move(before)); // a decoder's are many, made by other threads
  return result;
}

run_result bound_session::state::step(named_tensors inputs, run_options options) {
  const auto start = std::chrono::steady_clock::now();
  collect_copy();
  // A run that is given all bound inputs does not depend on lost values.
  const bool begins = values.begins_with(inputs, options);
  kept_step kept;
  if (values.log().keeps_steps())
    kept = keep_step(values.pairs(), inputs, options.device_inputs, begins, values.log().most_step_bytes());
  const auto timeout = options.timeout;
  for (bool first = true;; first = false)
    try {
      if (!begins && owed > 0) {
        options.timeout = left_of(timeout, start);
        catch_up(options);
      }
      options.timeout = left_of(timeout, start);
      run_result result = take(first ? std::move(inputs) : kept.inputs, options, &kept);
      result.stats.repeated_steps = std::exchange(repeated_, 0);
      return result;
    } catch (const state_rolled_back&) {
      throw;
    } catch (const error& e) {
      if (begins || e.code() != errc::device_lost)
        throw;
      go_back(e);
    }
}

void bound_session::state::go_back(const error& loss) {
  const failure copying = capture([&] { collect_copy(); }); // whatever it says, the one before is there
  {
    const std::lock_guard lock(mutex);
    const actors::device_list devices = model.state_->runtime->devices().devices();
    lost_ = describe_losses(values, *devices);
    const uint64_t taken = std::max(values.step(), owed);
    if (lost_.empty() || !values.go_back())
      throw loss;
    copy_ = {};
    owed = taken;
  }
  if (!values.can_repeat())
    give_up("");
}

void bound_session::state::give_up(const std::string& why) {
  const std::lock_guard lock(mutex);
  values.forget_later_steps();
  owed = 0;
  throw state_rolled_back(fmt::format("bound values were on a device that is lost ({}); they are those of step {} "
                                      "again: repeat from step {}{}",
                                      lost_, values.step(), values.step() + 1, why),
                          values.step() + 1);
}

void bound_session::state::catch_up(const run_options& limits) {
  const bool half = model.state_->model->options.precision == precision::fp16;
  while (values.step() < owed) {
    const kept_step& step = values.log().at(values.step() + 1);
    const run_result again =
        take(step.inputs, {.device_inputs = step.device_inputs, .timeout = limits.timeout, .cancel = limits.cancel},
             nullptr);
    ++repeated_;
    if (const std::string why = difference_from(step.answers, again.outputs, half); !why.empty()) {
      const std::string text = fmt::format("; the session has repeated step {}, and {}", values.step(), why);
      {
        const std::lock_guard lock(mutex);
        values.go_back();
      }
      give_up(text);
    }
  }
  const std::lock_guard lock(mutex);
  owed = 0;
}

bound_session::bound_session(session model, std::vector<output_binding> pairs, const bind_options& options)
    : state_(std::make_shared<state>(std::move(model), std::move(pairs), options)) {}

run_result bound_session::run(named_tensors inputs, run_options options) {
  const std::lock_guard one(state_->running);
  return state_->step(std::move(inputs), std::move(options));
}

tensor bound_session::fetch(const std::string& output) const {
  for (;;) {
    device_tensor value;
    {
      const std::lock_guard lock(state_->mutex);
      if (state_->owed == 0)
        value = state_->values.value(output);
    }
    try {
      if (value)
        return state_->model.fetch(value);
      const std::lock_guard one(state_->running);
      state_->catch_up({});
    } catch (const state_rolled_back&) {
      throw;
    } catch (const error& e) {
      if (e.code() != errc::device_lost)
        throw;
      const std::lock_guard one(state_->running);
      if (!value || state_->values.value(output) == value) // else a run has gone back meanwhile
        state_->go_back(e);
    }
  }
}

uint64_t bound_session::step() const {
  return state_->steps_taken();
}

} // namespace troupe
