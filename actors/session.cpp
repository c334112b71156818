#include "actors/engine_access.hpp"
#include "actors/session_state.hpp"
#include "plan/show/print.hpp"

namespace troupe {

using namespace actors;

namespace {

/// A run that watches its caller's stop token.
struct watched_run : pending_run {
  using pending_run::pending_run;
  std::optional<std::stop_callback<std::function<void()>>> watch;
};

pending_run_ptr make_watched_run(named_tensors inputs, const run_options& options, const coordinator_ref& to,
                                 answer_once<run_result>::receiver receiver = {}) {
  if (!options.cancel.stop_possible())
    return std::make_shared<pending_run>(std::move(inputs), options, std::move(receiver));
  auto run = std::make_shared<watched_run>(std::move(inputs), options, std::move(receiver));
  // The callback ends before the run that it names.
  run->watch.emplace(options.cancel, [raw = run.get(), to] {
    raw->cancelled = true;
    caf::anon_send(to, cancel_run{raw->request->ticket});
  });
  return run;
}

} // namespace

session::session(std::shared_ptr<state> s) : state_(std::move(s)) {}

const std::vector<value_info>& session::inputs() const {
  return state_->model->inputs;
}

const std::vector<value_info>& session::outputs() const {
  return state_->model->outputs;
}

run_result session::run(named_tensors inputs, const run_options& options) const {
  return run_async(std::move(inputs), options).get();
}

std::future<run_result> session::run_async(named_tensors inputs, const run_options& options) const {
  pending_run_ptr pending = make_watched_run(std::move(inputs), options, state_->coordinator);
  std::future<run_result> future = pending->result.future();
  caf::anon_send(state_->coordinator, actors::run{std::move(pending)});
  return future;
}

void session::run_async(named_tensors inputs, const run_options& options, run_callback done) const {
  if (!done)
    fail(errc::invalid_argument, "run_async: the callback is empty");
  const auto call = std::make_shared<completion>(state_->runtime->callbacks(), std::move(done));
  const auto hand_over = [call](run_result result, const failure& why) {
    if (why.failed())
      call->post({.failure = error(why.code, why.message)});
    else
      call->post({.result = std::move(result)});
  };
  caf::anon_send(state_->coordinator,
                 actors::run{make_watched_run(std::move(inputs), options, state_->coordinator, hand_over)});
}

bound_session session::bind(std::vector<output_binding> pairs, const bind_options& options) const {
  check_bindings(*state_->model, pairs);
  return {*this, std::move(pairs), options};
}

tensor session::fetch(const device_tensor& value) const {
  return state_->runtime->fetch(value);
}

std::future<run_result> session::fetch_async(named_device_tensors values) const {
  const auto pending = std::make_shared<pending_run>(named_tensors{}, run_options{.device_inputs = std::move(values)});
  pending->request->only_fetches = true;
  std::future<run_result> future = pending->result.future();
  caf::anon_send(state_->coordinator, actors::run{pending});
  return future;
}

std::string session::plan(const named_tensors& inputs, plan_format format) const {
  const bound_plan_ptr bound = bound_plan_of(*this, inputs);
  switch (format) {
    case plan_format::text: return to_text(*bound->source, bound.get());
    case plan_format::json: return to_json(*bound->source, bound.get());
    case plan_format::dot: return to_dot(*bound->source, bound.get());
  }
  fail(errc::invalid_argument, "there is no plan format {}", static_cast<int>(format));
}

session_stats session::stats() const {
  auto query = std::make_shared<stats_query>();
  std::future<session_stats> future = query->result.future();
  caf::anon_send(state_->coordinator, session_query_message{std::move(query)});
  return future.get();
}

} // namespace troupe
