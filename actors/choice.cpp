#include "actors/choice.hpp"

#include "actors/actor_runtime.hpp"

namespace troupe::actors {
namespace {

chosen_session open(actor_runtime& runtime, const model_ptr& m, const costed_strategy& best,
                    const session_plans::ahead& ahead) {
  model_ptr chosen = with_strategy(*m, best.shown.strategy, best.shown.policy);
  session_replicas opened = open_replicas(runtime, chosen, best.replicas, ahead);
  return {std::move(chosen), std::move(opened), best.shown};
}

} // namespace

compared_strategies compare_strategies(const actor_runtime& runtime, const model_ptr& m, const given_inputs* inputs) {
  return troupe::compare_strategies(m, devices_at_hand(runtime).for_session(m->options), inputs);
}

chosen_session choose_strategy(actor_runtime& runtime, const model_ptr& m, const given_inputs* inputs) {
  const compared_strategies all = compare_strategies(runtime, m, inputs);
  return open(runtime, m, best_of(all.found, m->options.choice), all.ahead);
}

chosen_session choose_for_queue(actor_runtime& runtime, const model_ptr& m, const given_inputs* inputs) {
  const auto asked = std::make_shared<model>(*m);
  asked->options.choice.goal = objective::throughput;
  const compared_strategies all = compare_strategies(runtime, asked, inputs);
  const costed_strategy& best = best_of(all.found, asked->options.choice);
  const devices_of_session devices = devices_at_hand(runtime).for_session(m->options);
  if (best.shown.strategy == strategy::none && best.replicas[0].own[0] == devices.usable[0].name)
    return {m, {}, best.shown};
  return open(runtime, asked, best, all.ahead);
}

bool chooses_for_queue(const actor_runtime& runtime, const session_options& options) {
  if (options.strategy != strategy::standard || !options.strategy_plugin.empty() ||
      options.policy != placement_policy::single || !options.policy_plugin.empty() || !options.pins.empty() ||
      !options.plan_file.empty() || !options.dims.empty() || options.stream.ordered)
    return false;
  return replicas_of(strategy::data_parallel, devices_at_hand(runtime).for_session(options).usable).size() > 1;
}

} // namespace troupe::actors
