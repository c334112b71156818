#include "actors/awake.hpp"
#include "actors/choice.hpp"
#include "actors/engine_access.hpp"
#include "actors/session_state.hpp"
#include "tensor/copy.hpp"

#include <algorithm>

namespace troupe {

using namespace actors;

namespace {

/// A run that watches its caller's stop token, and may have a place in a queue.
struct watched_run : pending_run {
  using pending_run::pending_run;
  request_gate::ticket place;
  std::optional<std::stop_callback<std::function<void()>>> watch;
};

/// Makes a run that `to`, its coordinator or its queue, is told to end if the caller asks for it.
template <class Ref>
std::unique_ptr<watched_run> make_watched_run(named_tensors inputs, run_options options, const Ref& to,
                                              answer_once<run_result>::receiver receiver = {},
                                              carried_values carried = {}) {
  const std::stop_token cancel = options.cancel;
  auto run =
      std::make_unique<watched_run>(std::move(inputs), std::move(options), std::move(receiver), std::move(carried));
  if (cancel.stop_possible()) // the callback ends before the run that it names
    run->watch.emplace(cancel, [raw = run.get(), to] {
      raw->cancelled = true;
      caf::anon_send(to, cancel_run{raw->request->ticket});
    });
  return run;
}

/// Returns what hands the end of a run over to its callback. Throws what `completion` throws.
answer_once<run_result>::receiver hand_over_to(run_callback done, const actor_runtime& runtime) {
  if (!done)
    fail(errc::invalid_argument, "the callback is empty");
  const auto call = std::make_shared<completion>(runtime.callbacks(), std::move(done));
  return [call](run_result result, const failure& why) {
    if (why.failed())
      call->post({.failure = error(why.code, why.message)});
    else
      call->post({.result = std::move(result)});
  };
}

/// Waits for a run's end. `by`: the only coordinator that it goes through; null if there are several.
run_result wait_for(std::future<run_result> result, const actor_runtime& runtime, const coordinator_ref& by) {
  if (runtime.devices().answers_fast()) {
    std::optional<lent_thread> lent;
    if (by)
      lent.emplace(caf::actor_cast<caf::strong_actor_ptr>(by));
    look_until([&] {
      if (lent)
        lent->run_if_woken();
      return result.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    });
  }
  return result.get();
}

/// Waits for a place in a queue, as long as the run may take.
request_gate::ticket enter(request_gate& gate, const run_options& options) {
  const auto limit = time_limit(options.timeout, "run_options::timeout");
  return gate.enter(limit ? std::optional(std::chrono::steady_clock::now() + *limit) : std::nullopt, options.cancel);
}

} // namespace

actors::stream_door& session::state::door() {
  const std::lock_guard lock(mutex_);
  if (!door_) {
    stream_parts parts;
    parts.how = how;
    parts.options = model->options.stream;
    parts.plugin = model->strategy_plugin;
    parts.replicas = replicas;
    parts.rows = rows;
    parts.make = maker();
    door_ = std::make_unique<stream_door>(runtime->spawn_stream(std::move(parts)), gate_);
  }
  return *door_;
}

tensor_maker session::state::maker() const {
  return maker_in(runtime->devices().blocks());
}

actors::stream_door* session::state::door_if_any() {
  const std::lock_guard lock(mutex_);
  return door_.get();
}

std::function<session::state::settled_choice()> session::state::chooser(std::optional<request_inputs> inputs) const {
  // The choice may outlast the run, and the caller's memory may not: what decides about programs is copied.
  if (inputs)
    for (auto& [name, value] : inputs->tensors)
      if (is_container(value.type()) || model->defaults.contains(name) ||
          std::ranges::find(model->host_inputs, name) != model->host_inputs.end())
        value = copy_of(value);
  const auto choose = chooses_for_queue ? actors::choose_for_queue : choose_strategy;
  return [runtime = runtime, model = model, gate = gate_, choose, inputs = std::move(inputs)] {
    std::optional<given_inputs> given;
    if (inputs)
      given.emplace(given_inputs{inputs->tensors, inputs->residents});
    chosen_session made = choose(*runtime, model, given ? &*given : nullptr);
    const strategy how = made.source->options.strategy;
    std::shared_ptr<state> to;
    if (!made.opened.replicas.empty())
      to = std::make_shared<state>(runtime, std::move(made.source), how, std::move(made.opened), gate);
    return settled_choice{std::move(to), std::move(made.why)};
  };
}

std::shared_ptr<session::state> session::state::settled(const std::shared_ptr<state>& self,
                                                        std::optional<request_inputs> inputs, const patience& limits) {
  return self->how == strategy::automatic ? self->choice_.get(self->chooser(std::move(inputs)), limits).to : self;
}

std::shared_ptr<session::state> session::state::for_queue(const std::shared_ptr<state>& self,
                                                          const named_tensors& inputs, const run_options& options) {
  if (!self->chooses_for_queue)
    return self;
  self->choice_.begin_once([&] { return self->chooser(request_inputs{inputs, options.device_inputs}); });
  const auto chosen = self->choice_.if_any();
  return chosen && chosen->to ? chosen->to : self;
}

std::shared_ptr<session::state> session::state::chosen_for_queue(const std::shared_ptr<state>& self,
                                                                 request_inputs inputs, const patience& limits) {
  return self->chooses_for_queue ? self->choice_.get(self->chooser(std::move(inputs)), limits).to : nullptr;
}

std::vector<std::shared_ptr<session::state>> session::state::at_work(const std::shared_ptr<state>& self) {
  std::vector<std::shared_ptr<state>> all;
  if (!self->replicas.empty())
    all.push_back(self);
  if (const auto chosen = self->choice_.if_any(); chosen && chosen->to)
    all.push_back(chosen->to);
  return all;
}

std::optional<strategy_choice> session::state::choice() {
  const auto chosen = choice_.if_any();
  return chosen ? std::optional(chosen->why) : std::nullopt;
}

session::session(std::shared_ptr<state> s) : state_(std::move(s)) {}

std::future<run_result> session::by_choice(const named_tensors& inputs, const run_options& options,
                                           start_run start) const {
  std::optional<session> chosen;
  run_options rest = options;
  const failure why = capture([&] { chosen = settled(inputs, rest); });
  if (chosen)
    return (chosen.value().*start)(inputs, rest);
  std::promise<run_result> failed;
  failed.set_exception(std::make_exception_ptr(error(why.code, why.message)));
  return failed.get_future();
}

void session::by_choice(const named_tensors& inputs, const run_options& options, run_callback done,
                        start_callback_run start) const {
  std::optional<session> chosen;
  run_options rest = options;
  const failure why = capture([&] { chosen = settled(inputs, rest); });
  if (chosen)
    return (chosen.value().*start)(inputs, rest, std::move(done));
  hand_over_to(std::move(done), *state_->runtime)({}, why);
}

session session::settled(const named_tensors& inputs, run_options& options) const {
  return session(in_time_of(options, [&](const patience& limits) {
    return state::settled(state_, state::request_inputs{inputs, options.device_inputs}, limits);
  }));
}

const std::vector<value_info>& session::inputs() const {
  return state_->model->inputs;
}

const std::vector<value_info>& session::outputs() const {
  return state_->model->outputs;
}

run_result session::run(named_tensors inputs, const run_options& options) const {
  return wait_for(run_async(std::move(inputs), options), *state_->runtime,
                  state_->how == strategy::none ? state_->coordinator() : coordinator_ref{});
}

run_result session::state::run(named_tensors inputs, run_options options, carried_values carried,
                               carried_bundle& made) const {
  auto pending = make_watched_run(std::move(inputs), std::move(options), coordinator(), {}, std::move(carried));
  const run_request_ptr request = pending->request;
  std::future<run_result> answer = pending->result.future();
  send_here(coordinator(), actors::run(std::move(pending)));
  run_result result = wait_for(std::move(answer), *runtime, coordinator());
  made = std::move(request->carried.made);
  return result;
}

std::future<run_result> session::state::prepare_on(const actors::replica& one, named_tensors inputs,
                                                   run_options options) {
  auto pending = make_watched_run(std::move(inputs), std::move(options), one.session->actor());
  pending->request->only_prepares = true;
  return ask<actors::run>(one.session->actor(), std::move(pending));
}

std::future<run_result> session::run_async(named_tensors inputs, const run_options& options) const {
  if (state_->how == strategy::automatic)
    return by_choice(inputs, options, &session::run_async);
  if (state_->how != strategy::none)
    return submit(std::move(inputs), options);
  auto pending = make_watched_run(std::move(inputs), options, state_->coordinator());
  std::future<run_result> future = pending->result.future();
  send_here(state_->coordinator(), actors::run(std::move(pending)));
  return future;
}

void session::run_async(named_tensors inputs, const run_options& options, run_callback done) const {
  if (state_->how == strategy::automatic)
    return by_choice(inputs, options, std::move(done), &session::run_async);
  if (state_->how != strategy::none)
    return submit(std::move(inputs), options, std::move(done));
  auto hand_over = hand_over_to(std::move(done), *state_->runtime);
  caf::anon_send(state_->coordinator(), actors::run(make_watched_run(std::move(inputs), options, state_->coordinator(),
                                                                     std::move(hand_over))));
}

std::future<run_result> session::submit(named_tensors inputs, const run_options& options) const {
  if (state_->how == strategy::automatic)
    return by_choice(inputs, options, &session::submit);
  const std::shared_ptr<state> to = state::for_queue(state_, inputs, options);
  stream_door& door = to->door();
  auto pending = make_watched_run(std::move(inputs), options, door.actor());
  std::future<run_result> future = pending->result.future();
  const failure why = capture([&] { pending->place = enter(door.gate(), options); });
  if (why.failed())
    pending->result.fail(why);
  else
    caf::anon_send(door.actor(), submit_request(std::move(pending)));
  return future;
}

void session::submit(named_tensors inputs, const run_options& options, run_callback done) const {
  if (state_->how == strategy::automatic)
    return by_choice(inputs, options, std::move(done), &session::submit);
  if (!done)
    fail(errc::invalid_argument, "the callback is empty");
  const std::shared_ptr<state> to = state::for_queue(state_, inputs, options);
  stream_door& door = to->door();
  // A callback holds its place until it has run, so that results do not pile up. A callback that submits does not wait:
  // it would wait for itself.
  const auto place = std::make_shared<request_gate::ticket>();
  auto hand_over = hand_over_to([done = std::move(done), place](run_outcome outcome) { done(std::move(outcome)); },
                                *state_->runtime);
  auto pending = make_watched_run(std::move(inputs), options, door.actor(), std::move(hand_over));
  const failure why = capture([&] {
    *place = state_->runtime->callbacks()->is_this_thread() ? door.gate().enter_at_once() : enter(door.gate(), options);
  });
  if (why.failed())
    pending->result.fail(why);
  else
    caf::anon_send(door.actor(), submit_request(std::move(pending)));
}

stream_stats session::queue_stats() const {
  stream_stats all;
  for (const std::shared_ptr<state>& part : state::at_work(state_))
    if (stream_door* door = part->door_if_any())
      all += ask<stream_query_message>(door->actor(), std::make_unique<stream_query>()).get();
  return all;
}

bound_session session::bind(std::vector<output_binding> pairs, const bind_options& options) const {
  check_bindings(*state_->model, pairs); // before a strategy is chosen
  const std::shared_ptr<state> s = state::settled(state_, std::nullopt, {});
  if (s->how == strategy::none)
    return {session(s), std::move(pairs), options};
  const actors::replica& mine = s->replicas[s->next_bound++ % s->replicas.size()];
  return {session(s->on(mine)), std::move(pairs), options};
}

tensor session::fetch(const device_tensor& value) const {
  return state_->runtime->fetch(value);
}

std::future<run_result> session::fetch_async(named_device_tensors values) const {
  auto pending = std::make_unique<pending_run>(named_tensors{}, run_options{.device_inputs = std::move(values)});
  pending->request->only_fetches = true;
  return ask<actors::run>(state_->coordinator(), std::move(pending));
}

std::optional<strategy_choice> session::choice() const {
  return state_->choice();
}

std::vector<strategy_choice> session::compare(const named_tensors& inputs) const {
  const given_inputs given{inputs, {}};
  std::vector<strategy_choice> shown;
  for (costed_strategy& c : compare_strategies(*state_->runtime, state_->model, &given).found)
    shown.push_back(std::move(c.shown));
  return shown;
}

session_stats session::stats() const {
  std::vector<std::future<session_stats>> each;
  for (const std::shared_ptr<state>& part : state::at_work(state_))
    for (const actors::replica& r : part->replicas)
      each.push_back(ask<session_query_message>(r.session->actor(), std::make_unique<stats_query>()));
  if (each.empty())
    return {.load_ms = state_->model->load_ms};
  session_stats all = each.front().get();
  for (size_t i = 1; i < each.size(); ++i)
    all += each[i].get();
  return all;
}

} // namespace troupe
