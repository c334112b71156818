#include "actors/replica.hpp"

#include "actors/actor_runtime.hpp"
#include "strategy/stream_forecast.hpp"
#include "strategy/stream_machine.hpp"

#include <algorithm>

namespace troupe::actors {
namespace {

/// Whether requests are to be cut or joined whatever the strategy.
bool wants_rows(const session_options& o) {
  return o.stream.micro_batch > 0 || o.stream.max_batch > 0;
}

} // namespace

devices_at_hand::devices_at_hand(const actor_runtime& runtime) : list(runtime.devices().devices()) {
  for (const device_handle& d : *list) {
    if (d.health->lost || d.health->leaves())
      lost.push_back(infos.size());
    infos.push_back(d.info);
  }
  if (lost.size() == infos.size())
    lost.clear(); // a run will say so
}

std::vector<device_info> devices_at_hand::usable(const session_options& options) const {
  for (const std::string& name : options.devices)
    if (std::none_of(infos.begin(), infos.end(), [&](const device_info& d) { return d.name == name; }))
      fail(errc::invalid_argument, "session_options::devices: the engine has no device '{}'", name);
  std::vector<device_info> found;
  for (size_t d = 0; d < infos.size(); ++d)
    if (std::find(lost.begin(), lost.end(), d) == lost.end() &&
        (options.devices.empty() ||
         std::find(options.devices.begin(), options.devices.end(), infos[d].name) != options.devices.end()))
      found.push_back(infos[d]);
  return found;
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

void check(const session_options& o, const model_rows& rows) {
  if (o.stream.queue_limit == 0)
    fail(errc::invalid_argument, "stream_options::queue_limit is 0: no request could ever be submitted");
  const stream_machine checks_the_others(machine_for(o.strategy, o.stream, {{}}, 1));
  if (wants_rows(o) && rows.symbol().empty())
    fail(errc::unsupported, "{} needs rows that are independent: {}",
         o.stream.micro_batch > 0 ? "micro_batch" : "max_batch", rows.whole_because());
}

std::string replica::out_because() const {
  const auto there = [](const auto& h) { return !h->lost && !h->leaves(); };
  if (own.empty() || std::any_of(own.begin(), own.end(), there))
    return {};
  if (const auto leaving = own.front()->leaves())
    return leaving->second;
  return own.front()->because("its device is lost");
}

std::vector<replica_set> replicas_for(const actor_runtime& runtime, const session_options& options) {
  const std::vector<device_info> usable = devices_at_hand(runtime).usable(options);
  return options.strategy == strategy::none ? std::vector<replica_set>{{options.devices, {}}}
                                            : replicas_of(options.strategy, usable);
}

session_replicas open_replicas(actor_runtime& runtime, const model_ptr& m, const std::vector<replica_set>& sets,
                               session_plans::ahead ahead) {
  const devices_at_hand at_hand(runtime);
  const session_options& options = m->options;
  if (m->saved && sets.size() > 1)
    fail(errc::invalid_argument, "a saved plan says what runs where: it cannot be used with the strategy {}",
         to_string(options.strategy));
  session_replicas all;
  for (const replica_set& set : sets) {
    check_pins(options.pins, set, at_hand.infos);
    auto plans = std::make_shared<session_plans>(m, at_hand.infos, at_hand.lost, set.all());
    ahead = plans->prepare_ahead(ahead);
    if (!all.rows) {
      all.rows = std::make_shared<const model_rows>(rows_of(*m, ahead.program.get()));
      check(options, *all.rows);
    }
    replica r{.devices = set};
    if (ahead.planned && options.strategy != strategy::none)
      r.predicted = stream_forecast({{ahead.planned->compiled}}, m->options.dims, all.rows->symbol()).figures(0);
    for (const device_handle& d : *at_hand.list)
      if (std::find(set.own.begin(), set.own.end(), d.info.name) != set.own.end() && !d.health->lost)
        r.own.push_back(d.health);
    r.session = std::make_shared<const open_coordinator>(runtime.spawn_coordinator(at_hand.list, std::move(plans)));
    all.replicas.push_back(std::move(r));
  }
  return all;
}

} // namespace troupe::actors
