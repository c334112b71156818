#include "run/installations.hpp"

#include <algorithm>
#include <set>

namespace troupe {

installations::installations(ledger_accounts accounts, std::vector<command>& commands)
    : accounts_(std::move(accounts)), commands_(commands), freed_(accounts_.size()), unanswered_(accounts_.size()) {}

void installations::add_device(std::shared_ptr<ledger_account> account) {
  accounts_.push_back(std::move(account));
  freed_.push_back(0);
  unanswered_.emplace_back();
}

std::vector<int64_t> installations::needed_for(const bound_plan& bound, const planned_model& planned) const {
  std::vector<int64_t> bytes(accounts_.size(), 0);
  const auto own = slots_.find(bound.layout->id);
  if (own != slots_.end() && !own->second.free.empty())
    return bytes;
  const bool weights_there = planned_.contains(&planned);
  for (device_index d = 0; d < planned.devices.size(); ++d)
    bytes[planned.devices[d]] += slot_bytes(*bound.layout, d) + (weights_there ? 0 : planned.compiled->weight_bytes[d]);
  return bytes;
}

bool installations::take_memory(const std::vector<int64_t>& bytes) {
  moved_ = true;
  const auto take = [&](size_t d) {
    const int64_t reused = std::min(bytes[d], freed_[d]);
    const bool taken = bytes[d] == reused || accounts_[d]->take(bytes[d] - reused);
    freed_[d] -= taken ? reused : 0;
    return taken;
  };
  size_t d = 0;
  while (d < bytes.size() && take(d))
    ++d;
  for (size_t other = 0; other < accounts_.size(); ++other)
    if (other != d)
      accounts_[other]->withdraw(); // what it waited for before may not be what is missing now
  // What the devices before it gave counts as freed: it is used by the next attempt, or given back with the rest.
  for (size_t taken = 0; d < bytes.size() && taken < d; ++taken)
    freed_[taken] += bytes[taken];
  return d == bytes.size();
}

std::optional<uint32_t> installations::take_slot(const bound_plan_ptr& bound, const planned_model_ptr& planned) {
  if (!take_memory(needed_for(*bound, *planned)))
    return std::nullopt;
  return occupy(bound, planned);
}

uint32_t installations::take_slot_anyway(const bound_plan_ptr& bound, const planned_model_ptr& planned) {
  moved_ = true;
  const std::vector<int64_t> bytes = needed_for(*bound, *planned);
  for (size_t d = 0; d < bytes.size(); ++d)
    if (bytes[d] > 0)
      accounts_[d]->take_anyway(bytes[d]);
  return occupy(bound, planned);
}

uint32_t installations::occupy(const bound_plan_ptr& bound, const planned_model_ptr& planned) {
  installation& i = install(bound, planned);
  ++i.in_use;
  i.last_use = ++uses_;
  slot_pool& slots = slots_.at(bound->layout->id);
  if (slots.free.empty())
    return slots.count++;
  // The lowest: its memory is there already, that of a higher one may have been refused.
  const auto lowest = std::min_element(slots.free.begin(), slots.free.end());
  const uint32_t slot = *lowest;
  slots.free.erase(lowest);
  return slot;
}

void installations::install_ahead(const bound_plan_ptr& bound, const planned_model_ptr& planned) {
  if (planned_.contains(planned.get()))
    install(bound, planned).last_use = ++uses_;
}

installation& installations::install(const bound_plan_ptr& bound, const planned_model_ptr& planned) {
  const auto [it, is_new] = installed_.try_emplace(bound->id);
  installation& fresh = it->second;
  if (!is_new)
    return fresh;
  fresh = {.bound = bound, .planned = planned, .started = std::chrono::steady_clock::now()};
  slot_pool& slots = slots_[fresh.bound->layout->id];
  if (++slots.installations == 1)
    ++planned_[fresh.planned.get()];
  slots.layout = fresh.bound->layout;
  slots.planned = fresh.planned;
  for (device_index d = 0; d < fresh.planned->devices.size(); ++d)
    if (fresh.planned->used[d]) {
      ++fresh.pending;
      const size_t device = fresh.planned->devices[d];
      unanswered_[device].push_back(fresh.bound->id);
      commands_.push_back(device_order{device, install_plan{fresh.bound, d}});
    }
  return fresh;
}

void installations::leave(uint64_t bound_plan, uint32_t slot) {
  moved_ = true;
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

bool installations::is_on(size_t device) const {
  return std::any_of(installed_.begin(), installed_.end(),
                     [&](const auto& entry) { return runs_on(*entry.second.planned, device); });
}

std::vector<uint64_t> installations::idle(uint64_t wanted) const {
  std::vector<uint64_t> ids;
  for (const auto& [id, i] : installed_)
    if (i.in_use == 0 && id != wanted)
      ids.push_back(id);
  std::sort(ids.begin(), ids.end(),
            [&](uint64_t a, uint64_t b) { return installed_.at(a).last_use < installed_.at(b).last_use; });
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
  moved_ = true;
  const auto found = installed_.find(bound_plan);
  const planned_model& planned = *found->second.planned;
  for (device_index d = 0; d < planned.devices.size(); ++d)
    if (planned.used[d])
      commands_.push_back(device_order{planned.devices[d], retire_plan{bound_plan}});
  const auto slots = slots_.find(found->second.bound->layout->id);
  if (--slots->second.installations == 0) {
    forget(slots->second);
    slots_.erase(slots);
  }
  installed_.erase(found);
}

void installations::forget(const slot_pool& slots) {
  const auto weights = planned_.find(slots.planned.get());
  const bool last = --weights->second == 0;
  if (last)
    planned_.erase(weights);
  const planned_model& p = *slots.planned;
  for (device_index d = 0; d < p.devices.size(); ++d)
    freed_[p.devices[d]] += slots.count * slot_bytes(*slots.layout, d) + (last ? p.compiled->weight_bytes[d] : 0);
}

bool installations::waits() const {
  return std::any_of(accounts_.begin(), accounts_.end(), [](const auto& a) { return a->waits(); });
}

void installations::withdraw() {
  for (const auto& a : accounts_)
    a->withdraw();
}

bool installations::others_lack() const {
  for (size_t d = 0; d < accounts_.size(); ++d)
    if (accounts_[d]->missing_elsewhere().value_or(0) > freed_[d])
      return true;
  return false;
}

void installations::give_back() {
  if (std::all_of(freed_.begin(), freed_.end(), [](int64_t bytes) { return bytes == 0; }))
    return;
  // After the orders that free it: the session that takes the memory sends its own orders later, so the device has room
  // then.
  commands_.push_back(give_memory_back{accounts_, std::exchange(freed_, std::vector<int64_t>(accounts_.size()))});
}

} // namespace troupe
