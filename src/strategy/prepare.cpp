#include "strategy/prepare.hpp"

#include "plan/estimate/gpu_support.hpp"
#include "strategy/stream_forecast.hpp"
#include "strategy/stream_machine.hpp"

namespace troupe {
namespace {

/// Whether requests are to be cut or joined whatever the strategy.
bool wants_rows(const session_options& o) {
  return o.stream.micro_batch > 0 || o.stream.max_batch > 0;
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

devices_of_session devices_for(std::vector<device_info> infos, std::vector<size_t> lost, const session_options& options,
                               std::string_view whose) {
  for (const std::string& name : options.devices)
    if (std::none_of(infos.begin(), infos.end(), [&](const device_info& d) { return d.name == name; }))
      fail(errc::invalid_argument, "session_options::devices: the {} has no device '{}'", whose, name);
  devices_of_session all{.infos = std::move(infos), .lost = std::move(lost), .usable = {}};
  for (size_t d = 0; d < all.infos.size(); ++d)
    if (std::find(all.lost.begin(), all.lost.end(), d) == all.lost.end() &&
        (options.devices.empty() ||
         std::find(options.devices.begin(), options.devices.end(), all.infos[d].name) != options.devices.end()))
      all.usable.push_back(all.infos[d]);
  return all;
}

std::vector<replica_set> replica_sets_for(const session_options& options, const devices_of_session& devices) {
  return options.strategy == strategy::none ? std::vector<replica_set>{{options.devices, {}}}
                                            : replicas_of(options.strategy, devices.usable);
}

model_rows rows_of(const model& m, const graph* program) {
  if (m.options.strategy == strategy::none && !wants_rows(m.options))
    return model_rows("neither a strategy nor max_batch or micro_batch ask for more");
  if (!program)
    return model_rows("the model's shapes follow from its inputs' values or ranks");
  try {
    const batch_rows where = prove_rows(*program);
    if (m.options.dims.contains(where.symbol))
      return model_rows(fmt::format("the dim '{}', which counts rows, has a fixed value", where.symbol));
    return {*program, where};
  } catch (const error& e) {
    if (e.code() != errc::unsupported)
      throw;
    return model_rows(e.what());
  }
}

void check_stream(const model& m, const model_rows& rows) {
  const session_options& o = m.options;
  if (o.stream.queue_limit == 0)
    fail(errc::invalid_argument, "stream_options::queue_limit is 0: no request could ever be submitted");
  const stream_machine checks_the_others(machine_for(m.options.strategy, o.stream, {{}}, 1, m.strategy_plugin));
  if (wants_rows(o) && rows.symbol().empty())
    fail(errc::unsupported, "{} needs rows that are independent: {}",
         o.stream.micro_batch > 0 ? "micro_batch" : "max_batch", rows.whole_because());
}

prepared_replicas prepare_replicas(const model_ptr& m, const devices_of_session& devices,
                                   const std::vector<replica_set>& sets, session_plans::ahead ahead) {
  const session_options& options = m->options;
  if (m->saved && sets.size() > 1)
    fail(errc::invalid_argument, "a saved plan says what runs where: it cannot be used with the strategy {}",
         to_string(options.strategy));
  prepared_replicas all;
  for (const replica_set& set : sets) {
    check_pins(options.pins, set, devices.infos);
    prepared_replica& r = all.replicas.emplace_back();
    r.devices = set;
    r.plans = std::make_shared<session_plans>(m, devices.infos, devices.lost, set.all());
    ahead = r.plans->prepare_ahead(ahead);
    if (!all.rows) {
      all.rows = std::make_shared<const model_rows>(rows_of(*m, ahead.program.get()));
      check_stream(*m, *all.rows);
    }
    if (ahead.planned && options.strategy != strategy::none)
      r.predicted = stream_forecast({{ahead.planned->compiled}}, options.dims, all.rows->symbol()).figures(0);
  }
  return all;
}

model_ptr with_strategy(const model& m, strategy how, placement_policy policy) {
  auto copy = std::make_shared<model>(m);
  copy->options.strategy = how;
  copy->options.policy = policy;
  return copy;
}

namespace {

/// What is asked about strategies for requests with these inputs, and what was rewritten on the way.
std::pair<factory_question, session_plans::ahead> question_about(const model_ptr& m, const devices_of_session& devices,
                                                                 const given_inputs* inputs) {
  factory_question asked{.devices = devices.usable,
                         .pins = m->options.pins,
                         .policy = m->options.policy,
                         .plugin = m->plugin,
                         .stream = m->options.stream,
                         .limits = m->options.choice};
  std::vector<std::string> names;
  for (const device_info& d : asked.devices)
    names.push_back(d.name);
  const model_ptr plain = with_strategy(*m, strategy::automatic, placement_policy::single);
  session_plans plans(plain, devices.infos, devices.lost, names);
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
  check_stream(*plain, rows);
  if (!rows.symbol().empty() && (!inputs || rows.measure(inputs->tensors).divisible))
    asked.rows = rows.symbol();
  return {std::move(asked), ahead};
}

} // namespace

compared_strategies compare_strategies(const model_ptr& m, const devices_of_session& devices,
                                       const given_inputs* inputs) {
  const auto [asked, ahead] = question_about(m, devices, inputs);
  return {troupe::compare_strategies(asked), ahead};
}

std::string slower_than_one(const model_ptr& m, const devices_of_session& devices,
                            const std::vector<replica_set>& replicas, const given_inputs& inputs) {
  return slower_than_one(question_about(m, devices, &inputs).first, m->options.strategy, m->options.policy, replicas);
}

} // namespace troupe
