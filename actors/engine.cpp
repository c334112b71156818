#include "actors/engine.hpp"

#include "actors/actor_runtime.hpp"
#include "base/guard.hpp"
#include "loader/onnx_loader.hpp"

#include <caf/send.hpp>

namespace troupe {

using namespace actors;

/// The engine's own handle closes the runtime; sessions that live longer find it closed.
struct engine::state {
  explicit state(const engine_options& options) : runtime(std::make_shared<actor_runtime>(options)) {}
  ~state() { runtime->close(); }

  std::shared_ptr<actor_runtime> runtime;
};

struct session::state {
  std::shared_ptr<actor_runtime> runtime; // destroyed last: the coordinator's handle needs its system
  model_ptr model;
  coordinator_ref coordinator;

  ~state() { caf::anon_send(coordinator, close_session{}); }
};

namespace {

/// A run that watches its caller's stop token.
struct watched_run : pending_run {
  using pending_run::pending_run;
  std::optional<std::stop_callback<std::function<void()>>> watch;
};

pending_run_ptr make_watched_run(named_tensors inputs, const run_options& options, const coordinator_ref& to) {
  if (!options.cancel.stop_possible())
    return std::make_shared<pending_run>(std::move(inputs), options);
  auto run = std::make_shared<watched_run>(std::move(inputs), options);
  // The callback ends before the run that it names.
  run->watch.emplace(options.cancel, [raw = run.get(), to] {
    raw->cancelled = true;
    caf::anon_send(to, cancel_run{raw->request->ticket});
  });
  return run;
}

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

} // namespace

// -- engine

engine::engine(const engine_options& options) : state_(std::make_shared<state>(options)) {}

engine::~engine() = default;
engine::engine(engine&&) noexcept = default;
engine& engine::operator=(engine&&) noexcept = default;

std::vector<device_info> engine::devices() const {
  std::vector<device_info> infos;
  for (const device_handle& d : state_->runtime->devices().devices())
    infos.push_back(d.info);
  return infos;
}

std::vector<device_stats> engine::stats() const {
  return state_->runtime->devices().stats();
}

tensor engine::allocate(dtype type, shape dims) {
  return guarded("a tensor for an input",
                 [&] { return make_host_tensor(*state_->runtime->devices().blocks(), type, std::move(dims)); });
}

tensor engine::fetch(const device_tensor& value) const {
  return state_->runtime->fetch(value);
}

device_tensor engine::put(const tensor& value, const std::string& device) const {
  return state_->runtime->put(value, device);
}

std::vector<std::string> engine::lost_devices() const {
  std::vector<std::string> names;
  for (const device_handle& d : state_->runtime->devices().devices())
    if (d.health->lost)
      names.push_back(d.info.name);
  return names;
}

std::string engine::no_gpu_because() const {
  return state_->runtime->devices().no_gpu_because();
}

std::string engine::profile_problem() const {
  return state_->runtime->devices().profile_problem();
}

std::vector<std::string> engine::gpu_messages() const {
  return state_->runtime->devices().gpu_messages();
}

session engine::load(const std::string& path, const session_options& options) {
  const auto start = std::chrono::steady_clock::now();
  graph source = load_model(std::filesystem::path(path));
  return guarded("", [&] { return open(make_model(std::move(source), options, milliseconds_since(start))); });
}

session engine::load(graph model, const session_options& options) {
  return guarded("", [&] { return open(make_model(std::move(model), options, 0)); });
}

session engine::open(model_ptr model) {
  auto plans = std::make_shared<session_plans>(model, devices());
  plans->prepare_ahead();
  auto s = std::make_shared<session::state>();
  s->runtime = state_->runtime;
  s->model = std::move(model);
  s->coordinator = state_->runtime->spawn_coordinator(std::move(plans));
  return session(std::move(s));
}

// -- session

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

bound_session session::bind(std::vector<output_binding> pairs) const {
  check_bindings(*state_->model, pairs);
  return {*this, std::move(pairs)};
}

tensor session::fetch(const device_tensor& value) const {
  return state_->runtime->fetch(value);
}

bound_plan_ptr session::bind_for(const named_tensors& inputs) const {
  auto query = std::make_shared<plan_query>();
  query->inputs = inputs;
  std::future<bound_plan_ptr> future = query->result.future();
  caf::anon_send(state_->coordinator, plan_query_message{std::move(query)});
  return future.get();
}

std::shared_ptr<const plan> session::plan_for(const named_tensors& inputs) const {
  return bind_for(inputs)->source;
}

session_stats session::stats() const {
  auto query = std::make_shared<stats_query>();
  std::future<session_stats> future = query->result.future();
  caf::anon_send(state_->coordinator, session_query_message{std::move(query)});
  return future.get();
}

} // namespace troupe
