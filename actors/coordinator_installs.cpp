// Bound plans on their devices: installed before their first chunk, retired when the cache has let go of them and no
// execution runs them. Arena slots belong to layouts, which bound plans share: a slot's memory serves one execution after the
// other, whatever their dims.
#include "actors/coordinator.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <algorithm>
#include <set>

namespace troupe::actors {

bool coordinator_state::reserve(const execution& e, const bound_plan& bound) {
  const auto slots = slots_.find(bound.layout->id);
  const bool has_slot = slots != slots_.end() && !slots->second.free.empty();
  if (has_slot || fits(*e.planned(), bound))
    return true;
  retire_idle(bound.id);
  // Where nobody else could give back any, the device has the last word.
  return fits(*e.planned(), bound) || !wait_for_memory(e);
}

bool coordinator_state::fits(const planned_model& planned, const bound_plan& bound) const {
  std::vector<int64_t> held(devices_.size(), 0);
  std::set<const planned_model*> counted;
  const auto add = [&](const planned_model& p, const arena_layout& layout, int64_t slots) {
    const bool is_new = counted.insert(&p).second;
    for (device_index d = 0; d < p.devices.size(); ++d)
      held[p.devices[d]] += slots * slot_bytes(layout, d) + (is_new ? p.compiled->weight_bytes[d] : 0);
  };
  add(planned, *bound.layout, 1);
  for (const auto& [id, slots] : slots_)
    add(*slots.planned, *slots.layout, slots.count);
  for (size_t d = 0; d < held.size(); ++d)
    if (held[d] > devices_[d].handle.info.memory_bytes)
      return false;
  return true;
}

void coordinator_state::retire_idle(uint64_t wanted) {
  std::vector<uint64_t> idle;
  for (const auto& [id, i] : installations_)
    if (i.in_use == 0 && id != wanted)
      idle.push_back(id);
  options_.plans->forget_bound_plans(idle);
  retire_evicted();
}

coordinator_state::installation& coordinator_state::install(const bound_plan_ptr& bound,
                                                            const planned_model_ptr& planned) {
  const auto [it, is_new] = installations_.try_emplace(bound->id);
  installation& i = it->second;
  if (!is_new)
    return i;
  i.bound = bound;
  i.planned = planned;
  i.started = now();
  slot_pool& slots = slots_[bound->layout->id];
  ++slots.installations;
  slots.layout = bound->layout;
  slots.planned = planned;
  for (device_index d = 0; d < planned->devices.size(); ++d)
    if (planned->used[d]) {
      ++i.pending;
      device_state& device = devices_[planned->devices[d]];
      device.installing.push_back(bound->id);
      self_->send(device.handle.actor, install_plan{bound, d});
    }
  return i;
}

void coordinator_state::on_installed(const plan_installed& answer) {
  // By sender: the installation may be retired already, and its device would look busy for ever.
  const auto sender = caf::actor_cast<caf::actor_addr>(self_->current_sender());
  for (device_state& d : devices_)
    if (d.handle.actor.address() == sender)
      std::erase(d.installing, answer.bound_plan);
  const auto found = installations_.find(answer.bound_plan);
  if (found == installations_.end())
    return;
  installation& i = found->second;
  const device_state& device = devices_[i.planned->devices[answer.self]];
  if (i.pending > 0 && --i.pending == 0)
    options_.plans->add_plan_ms(std::chrono::duration<double, std::milli>(now() - i.started).count());
  if (!answer.why.failed())
    return;
  if (answer.why.code == errc::device_lost)
    return lose_device(i.planned->devices[answer.self], answer.why.message);
  if (make_room(i.planned->devices[answer.self], bound_plan_ptr(i.bound), answer.why))
    return;
  const failure why{answer.why.code, fmt::format("device '{}' cannot take its part of the plan: {}",
                                                 device.handle.info.name, answer.why.message)};
  if (why.code == errc::unsupported)
    return plan_exactly(bound_plan_ptr(i.bound), why);
  options_.plans->forget_bound_plans();
  for (execution_id id : executions_where(
           [&](const execution& e) { return !e.stopped() && e.bound() && e.bound()->id == answer.bound_plan; }))
    if (const auto e = executions_.find(id); e != executions_.end() && !e->second->stopped())
      end_early(*e->second, why); // which ends the run's other executions too
  retire_evicted();
}

uint32_t coordinator_state::take_slot(installation& i) {
  ++i.in_use;
  slot_pool& slots = slots_.at(i.bound->layout->id);
  if (slots.free.empty())
    return slots.count++;
  // The lowest: its memory is there already, that of a higher one may have been refused.
  const auto lowest = std::min_element(slots.free.begin(), slots.free.end());
  const uint32_t slot = *lowest;
  slots.free.erase(lowest);
  return slot;
}

void coordinator_state::leave_segment(execution& e) {
  if (!e.bound())
    return;
  const uint64_t id = e.bound()->id;
  e.leave_segment();
  installation& i = installations_.at(id);
  slots_.at(i.bound->layout->id).free.push_back(e.slot());
  --i.in_use;
  if (i.evicted && i.in_use == 0)
    retire(id);
}

void coordinator_state::retire_evicted() {
  for (uint64_t id : options_.plans->take_evicted()) {
    const auto found = installations_.find(id);
    if (found == installations_.end())
      continue; // bound, never run
    found->second.evicted = true;
    if (found->second.in_use == 0)
      retire(id);
  }
}

void coordinator_state::retire(uint64_t bound_plan) {
  const auto found = installations_.find(bound_plan);
  const planned_model& planned = *found->second.planned;
  for (device_index d = 0; d < planned.devices.size(); ++d)
    if (planned.used[d])
      self_->send(devices_[planned.devices[d]].handle.actor, retire_plan{bound_plan});
  const auto slots = slots_.find(found->second.bound->layout->id);
  if (--slots->second.installations == 0)
    slots_.erase(slots);
  installations_.erase(found);
}

} // namespace troupe::actors
