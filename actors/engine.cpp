#include "troupe/engine.hpp"

#include "actors/choice.hpp"
#include "actors/engine_access.hpp"
#include "actors/engine_state.hpp"
#include "base/elapsed.hpp"
#include "base/guard.hpp"
#include "loader/onnx_loader.hpp"
#include "plan/device_summary.hpp"

namespace troupe {

using namespace actors;

namespace {

session_options prepared(session_options options) {
  options.policy = policy_of(options);
  return options;
}

} // namespace

engine::engine(const engine_options& options) : engine(options, engine_hooks{}) {}

engine::engine(const engine_options& options, const engine_hooks& hooks)
    : state_(std::make_shared<state>(options, hooks)) {}

engine::~engine() = default;
engine::engine(engine&&) noexcept = default;
engine& engine::operator=(engine&&) noexcept = default;

std::vector<device_summary> engine::devices() const {
  std::vector<device_summary> all;
  for (const device_info& d : device_infos(*this))
    all.push_back(summary_of(d));
  return all;
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
  const device_list opened = state_->runtime->devices().devices();
  for (const device_handle& d : *opened)
    if (d.health->lost)
      names.push_back(d.info.name);
  return names;
}

void engine::add_host(const std::string& host) {
  for (const host_address& h : parse_hosts({host}))
    state_->runtime->add_host(h);
}

std::vector<host_summary> engine::hosts() const {
  return state_->runtime->other_hosts();
}

std::string engine::no_gpu_because() const {
  return state_->runtime->devices().no_gpu_because();
}

std::string engine::profile_problem() const {
  return state_->runtime->devices().profile_problem();
}

session engine::load(const std::string& path, const session_options& options) {
  const auto start = std::chrono::steady_clock::now();
  graph source = load_model(std::filesystem::path(path));
  return guarded("", [&] {
    return open(make_model(std::move(source), prepared(options), milliseconds_since(start), path), options);
  });
}

session engine::load(const built_model& model, const session_options& options) {
  return guarded("", [&] { return open(make_model(model.source(), prepared(options), 0), options); });
}

session engine::open(model_ptr model, const session_options& asked) {
  const strategy how = model->options.strategy;
  if (how == strategy::automatic && model->saved)
    fail(errc::invalid_argument, "a saved plan says what runs where: there is no strategy to choose");
  session_replicas opened;
  if (const auto sets = replicas_for(*state_->runtime, model->options); how != strategy::automatic)
    opened = open_replicas(*state_->runtime, model, sets);
  const auto made = std::make_shared<session::state>(state_->runtime, std::move(model), how, std::move(opened));
  made->chooses_for_queue = chooses_for_queue(*state_->runtime, asked);
  return session(made);
}

} // namespace troupe
