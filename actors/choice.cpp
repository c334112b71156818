#include "actors/choice.hpp"

#include "actors/actor_runtime.hpp"

namespace troupe::actors {

compared_strategies compare_strategies(const actor_runtime& runtime, const model_ptr& m, const given_inputs* inputs) {
  return troupe::compare_strategies(m, devices_at_hand(runtime).for_session(m->options), inputs);
}

chosen_session choose_strategy(actor_runtime& runtime, const model_ptr& m, const given_inputs* inputs) {
  const compared_strategies all = compare_strategies(runtime, m, inputs);
  const costed_strategy& best = best_of(all.found, m->options.choice);
  model_ptr chosen = with_strategy(*m, best.shown.strategy, best.shown.policy);
  session_replicas opened = open_replicas(runtime, chosen, best.replicas, all.ahead);
  return {std::move(chosen), std::move(opened), best.shown};
}

} // namespace troupe::actors
