// The choice between strategies for a session, once its first request is known (strategy/factory.hpp).
#pragma once

#include "actors/replica.hpp"
#include "strategy/factory.hpp"

namespace troupe::actors {

/// All strategies for a model on the devices that are there now, and what was rewritten on the way.
struct compared_strategies {
  std::vector<costed_strategy> found; // see `compare_strategies`
  session_plans::ahead ahead;
};

/// Compares them for a request with these inputs; null: for one whose open dims are `representative_dim`, if inputs decide nothing. Throws
/// what a run with these inputs throws before it begins.
compared_strategies compare_strategies(const actor_runtime& runtime, const model_ptr& m, const given_inputs* inputs);

/// What a session with `strategy::automatic` becomes.
struct chosen_session {
  model_ptr source; // with the chosen strategy among its options
  session_replicas opened;
  strategy_choice why;
};

/// Chooses for a request with these inputs, as above. Throws what `best_of` throws.
chosen_session choose_strategy(actor_runtime& runtime, const model_ptr& m, const given_inputs* inputs);

} // namespace troupe::actors
