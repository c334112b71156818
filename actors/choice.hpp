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
/// The same for a session's queue: what should answer the most requests a second. `opened` has no replicas if that is
/// the session itself, one plan that its first device leads.
chosen_session choose_for_queue(actor_runtime& runtime, const model_ptr& m, const given_inputs* inputs);

/// Whether there is something to choose for the queue of a session with such options (`strategy::standard`).
bool chooses_for_queue(const actor_runtime& runtime, const session_options& options);

} // namespace troupe::actors
