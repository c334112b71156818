#include "run/installations.hpp"

#include <algorithm>
#include <set>

namespace troupe {

installations::installations(std::vector<int64_t> limits, std::vector<command>& commands)
    : limits_(std::move(limits)), commands_(commands), unanswered_(limits_.size()) {}

void installations::add_device(int64_t limit) {
  limits_.push_back(limit);
  unanswered_.emplace_back();
}

bool installations::has_room(const planned_model& planned, const bound_plan& bound) const {
  const auto own = slots_.find(bound.layout->id);
  if (own != slots_.end() && !own->second.free.empty())
    return true;
  std::vector<int64_t> held(limits_.size(), 0);
  std::set<const planned_model*> counted;
  const auto add = [&](const planned_model& p, const arena_layout& layout, int64_t slots) {
    const bool is_new = counted.insert(&p).second;
    for (device_index d = 0; d < p.devices.size(); ++d)
      held[p.devices[d]] += slots * slot_bytes(layout, d) + (is_new ? p.compiled->weight_bytes[d] : 0);
  };
  add(planned, *bound.layout, 1);
  for (const auto& [id, slots] : slots_)
    add(*slots.planned, *slots.layout, slots.count);
  return std::equal(held.begin(), held.end(), limits_.begin(), std::less_equal<>());
}

uint32_t installations::take_slot(const bound_plan_ptr& bound, const planned_model_ptr& planned) {
  const auto [it, is_new] = installed_.try_emplace(bound->id);
  installation& i = it->second;
  if (is_new) {
    i = {.bound = bound, .planned = planned, .started = std::chrono::steady_clock::now()};
    install(i);
  }
  ++i.in_use;
  slot_pool& slots = slots_.at(bound->layout->id);
  if (slots.free.empty())
    return slots.count++;
  // The lowest: its memory is there already, that of a higher one may have been refused.
  const auto lowest = std::min_element(slots.free.begin(), slots.free.end());
  const uint32_t slot = *lowest;
  slots.free.erase(lowest);
  return slot;
}

void installations::install(installation& fresh) {
  slot_pool& slots = slots_[fresh.bound->layout->id];
  ++slots.installations;
  slots.layout = fresh.bound->layout;
  slots.planned = fresh.planned;
  for (device_index d = 0; d < fresh.planned->devices.size(); ++d)
    if (fresh.planned->used[d]) {
      ++fresh.pending;
      const size_t device = fresh.planned->devices[d];
      unanswered_[device].push_back(fresh.bound->id);
      commands_.push_back(device_order{device, install_plan{fresh.bound, d}});
    }
}

void installations::leave(uint64_t bound_plan, uint32_t slot) {
  installation& i = installed_.at(bound_plan);
  slots_.at(i.bound->layout->id).free.push_back(slot);
  if (--i.in_use == 0 && i.evicted)
    retire(bound_plan);
}

installation* installations::answered(size_t device, const plan_installed& answer) {
  std::erase(unanswered_[device], answer.bound_plan);
  const auto found = installed_.find(answer.bound_plan);
  return found == installed_.end() ? nullptr : &found->second;
}

std::vector<uint64_t> installations::idle(uint64_t wanted) const {
  std::vector<uint64_t> ids;
  for (const auto& [id, i] : installed_)
    if (i.in_use == 0 && id != wanted)
      ids.push_back(id);
  return ids;
}

void installations::evict(std::span<const uint64_t> bound_plans) {
  for (uint64_t id : bound_plans) {
    const auto found = installed_.find(id);
    if (found == installed_.end())
      continue; // bound, never run
    found->second.evicted = true;
    if (found->second.in_use == 0)
      retire(id);
  }
}

void installations::retire_all() {
  while (!installed_.empty())
    retire(installed_.begin()->first);
}

void installations::retire(uint64_t bound_plan) {
  const auto found = installed_.find(bound_plan);
  const planned_model& planned = *found->second.planned;
  for (device_index d = 0; d < planned.devices.size(); ++d)
    if (planned.used[d])
      commands_.push_back(device_order{planned.devices[d], retire_plan{bound_plan}});
  const auto slots = slots_.find(found->second.bound->layout->id);
  if (--slots->second.installations == 0)
    slots_.erase(slots);
  installed_.erase(found);
}

} // namespace troupe
