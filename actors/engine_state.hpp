// What an engine's handle refers to, and the door to it for this project's own use (engine_access.hpp).
#pragma once

#include "actors/session_state.hpp"
#include "troupe/engine.hpp"

namespace troupe {

/// The engine's own handle closes the runtime; sessions that live longer find it closed.
struct engine::state {
  state(const engine_options& options, const engine_hooks& hooks)
      : runtime(std::make_shared<actors::actor_runtime>(options, hooks)) {}
  ~state() { runtime->close(); }

  std::shared_ptr<actors::actor_runtime> runtime;
};

/// The friend of the public handles.
struct engine_access {
  static engine make(const engine_options& options, const engine_hooks& hooks) { return {options, hooks}; }
  static actors::actor_runtime& runtime(const engine& e) { return *e.state_->runtime; }
  static const actors::host& devices(const engine& e) { return runtime(e).devices(); }
  static const actors::actor_runtime& runtime(const session& s) { return *s.state_->runtime; }
  static const model& model_of(const session& s) { return *s.state_->model; }
  static const model_ptr& shared_model_of(const session& s) { return s.state_->model; }
  static const std::vector<actors::replica>& replicas_of(const session& s) { return s.state_->replicas; }
  /// Who plans a request with these inputs.
  static actors::coordinator_ref coordinator(const session& s, const named_tensors& inputs) {
    run_options unlimited;
    return s.settled(inputs, unlimited).state_->coordinator();
  }
};

} // namespace troupe
