#include "actors/choice.hpp"

#include "actors/actor_runtime.hpp"
#include "plan/place/gpu_support.hpp"

namespace troupe::actors {
namespace {

/// A copy of a model that is prepared in another way; weights are shared.
model_ptr with_options(const model& m, strategy how, placement_policy policy) {
  auto copy = std::make_shared<model>(m);
  copy->options.strategy = how;
  copy->options.policy = policy;
  return copy;
}

/// Returns what the caches have for a request once all of it is made.
prepared_run prepare_all(session_plans& plans, const given_inputs& inputs) {
  for (;;) {
    auto found = plans.prepare(inputs);
    if (auto* run = std::get_if<prepared_run>(&found))
      return std::move(*run);
    const auto& job = std::get<plan_job>(found);
    job.make();
    job.keep();
  }
}

/// Returns the dims of a request of which only the caller's own are known.
bindings typical_symbols(const model& m) {
  bindings all = m.options.dims;
  for (const value_info& input : m.inputs)
    if (input.dims)
      for (const dim& d : *input.dims) {
        std::vector<std::string> names;
        d.collect_symbols(names);
        for (const std::string& name : names)
          all.try_emplace(name, representative_dim);
      }
  return all;
}

} // namespace

compared_strategies compare_strategies(const actor_runtime& runtime, const model_ptr& m, const given_inputs* inputs) {
  const devices_at_hand at_hand(runtime);
  factory_question asked{.devices = at_hand.usable(m->options),
                         .pins = m->options.pins,
                         .policy = m->options.policy,
                         .stream = m->options.stream,
                         .limits = m->options.choice};
  std::vector<std::string> names;
  for (const device_info& d : asked.devices)
    names.push_back(d.name);
  const model_ptr plain = with_options(*m, strategy::automatic, placement_policy::single);
  session_plans plans(plain, at_hand.infos, at_hand.lost, names);
  const session_plans::ahead ahead = plans.prepare_ahead();
  asked.program = ahead.program;
  asked.symbols = typical_symbols(*m);
  if (inputs) {
    const prepared_run run = prepare_all(plans, *inputs);
    asked.program = run.asked->compiled->given;
    asked.symbols = run.symbols;
  }
  if (!asked.program)
    fail(errc::unsupported,
         "a strategy can only be chosen with the inputs of a request: they decide the model's shapes");
  const model_rows rows = rows_of(*plain, ahead.program.get());
  check(plain->options, rows);
  if (!rows.symbol().empty() && (!inputs || rows.measure(inputs->tensors).divisible))
    asked.rows = rows.symbol();
  return {troupe::compare_strategies(asked), ahead};
}

chosen_session choose_strategy(actor_runtime& runtime, const model_ptr& m, const given_inputs* inputs) {
  const compared_strategies all = compare_strategies(runtime, m, inputs);
  const costed_strategy& best = best_of(all.found, m->options.choice);
  model_ptr chosen = with_options(*m, best.shown.strategy, best.shown.policy);
  session_replicas opened = open_replicas(runtime, chosen, best.replicas, all.ahead);
  return {std::move(chosen), std::move(opened), best.shown};
}

} // namespace troupe::actors
