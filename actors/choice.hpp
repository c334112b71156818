// The choice between strategies for a session, once its first request is known (strategy/factory.hpp).
#pragma once

#include "actors/replica.hpp"
#include "strategy/prepare.hpp"

namespace troupe::actors {

/// Compares all strategies for a request with these inputs, on the devices that are there now; see
/// strategy/prepare.hpp.
compared_strategies compare_strategies(const actor_runtime& runtime, const model_ptr& m, const given_inputs* inputs);

/// What a session with `strategy::automatic` becomes.
struct chosen_session {
  model_ptr source; // with the chosen strategy among its options
  session_replicas opened;
  strategy_choice why;
};

/// Chooses for a request with these inputs. Throws what `best_of` throws.
chosen_session choose_strategy(actor_runtime& runtime, const model_ptr& m, const given_inputs* inputs);

} // namespace troupe::actors
