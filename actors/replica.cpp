#include "actors/replica.hpp"

#include "actors/actor_runtime.hpp"

#include <algorithm>

namespace troupe::actors {

devices_at_hand::devices_at_hand(const actor_runtime& runtime) : list(runtime.devices().devices()) {
  for (const device_handle& d : *list) {
    if (d.health->lost || d.health->leaves())
      lost.push_back(infos.size());
    infos.push_back(d.info);
  }
  if (lost.size() == infos.size())
    lost.clear(); // a run will say so
}

devices_of_session devices_at_hand::for_session(const session_options& options) const {
  return devices_for(infos, lost, options, "engine");
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
  return replica_sets_for(options, devices_at_hand(runtime).for_session(options));
}

machine_options predicted_machine(strategy how, const stream_options& options, std::span<const replica> replicas,
                                  std::shared_ptr<const strategy_library> plugin) {
  std::vector<replica_figures> predicted;
  for (const replica& r : replicas)
    predicted.push_back(r.predicted);
  return machine_for(how, options, std::move(predicted), replicas.front().devices.own.size(), std::move(plugin));
}

session_replicas open_replicas(actor_runtime& runtime, const model_ptr& m, const std::vector<replica_set>& sets,
                               session_plans::ahead ahead) {
  const devices_at_hand at_hand(runtime);
  prepared_replicas prepared = prepare_replicas(m, at_hand.for_session(m->options), sets, std::move(ahead));
  session_replicas all;
  all.rows = std::move(prepared.rows);
  for (prepared_replica& p : prepared.replicas) {
    replica r{.devices = std::move(p.devices), .predicted = p.predicted};
    for (const device_handle& d : *at_hand.list)
      if (std::find(r.devices.own.begin(), r.devices.own.end(), d.info.name) != r.devices.own.end() && !d.health->lost)
        r.own.push_back(d.health);
    r.session = std::make_shared<const open_coordinator>(runtime.spawn_coordinator(at_hand.list, std::move(p.plans)));
    all.replicas.push_back(std::move(r));
  }
  return all;
}

} // namespace troupe::actors
