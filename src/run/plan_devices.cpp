#include "run/plan_devices.hpp"

#include <algorithm>

namespace troupe {

plan_devices::plan_devices(std::vector<device_info> all, const std::vector<size_t>& lost, std::vector<std::string> only)
    : devices_(std::move(all)), only_(std::move(only)) {
  for (size_t d = 0; d < devices_.size(); ++d)
    if (allows(devices_[d]) && std::find(lost.begin(), lost.end(), d) == lost.end())
      usable_.push_back(d);
  order_usable();
  stated_ = profiles();
  first_ = usable_;
  for (size_t d : lost)
    if (allows(devices_[d]) && !has_name(first_, devices_[d].name))
      first_.push_back(d);
}

std::vector<device_info> plan_devices::infos() const {
  std::vector<device_info> infos;
  for (size_t d : usable_)
    infos.push_back(devices_[d]);
  return infos;
}

std::vector<device_profile> plan_devices::profiles() const {
  std::vector<device_profile> all;
  for (const device_info& d : devices_)
    all.push_back(d.profile);
  return all;
}

void plan_devices::use(const std::vector<device_profile>& profiles) {
  for (std::vector<device_info>* devices : {&devices_, &claimed_})
    for (size_t d = 0; d < std::min(profiles.size(), devices->size()); ++d)
      (*devices)[d].profile = profiles[d];
}

hash128 plan_devices::kept_key(const hash128& key) const {
  hasher h;
  h.add(key);
  for (size_t d : usable_) // a device that came back is another one, though it may be equal
    h.add(d);
  return h.digest();
}

bool plan_devices::copies_matter() const {
  return std::any_of(devices_.begin(), devices_.end(), [](const device_info& d) { return d.copies_beside_work; });
}

plan_use plan_devices::use_of(const model& m, const plan_options& options) {
  return {options.values_stay,
          m.options.policy == placement_policy::split && options.policy == placement_policy::single};
}

plan_options plan_devices::options_for(const model& m, const bindings& symbols, plan_use use) const {
  std::vector<placement_pin> pins = m.options.pins; // without those to devices that are lost
  std::erase_if(pins, [&](const placement_pin& p) {
    return !has_name(usable_, p.device) &&
           std::any_of(devices_.begin(), devices_.end(), [&](const device_info& d) { return d.name == p.device; });
  });
  const bool complete = usable_.size() == first_.size();
  return {.policy = use.whole ? placement_policy::single : m.options.policy,
          // A saved plan names devices, so it cannot be followed without one of them.
          .saved = complete && !use.whole ? m.saved : nullptr,
          .pins = std::move(pins),
          .expected = symbols,
          .values_stay = use.stay,
          .plugin = m.plugin,
          .split_along = m.options.split_along};
}

bool plan_devices::allows(const device_info& device) const {
  return only_.empty() || std::find(only_.begin(), only_.end(), device.name) != only_.end();
}

void plan_devices::order_usable() {
  if (only_.empty())
    return;
  const auto place = [this](size_t d) { return std::find(only_.begin(), only_.end(), devices_[d].name); };
  std::stable_sort(usable_.begin(), usable_.end(), [&](size_t a, size_t b) { return place(a) < place(b); });
}

bool plan_devices::has_name(const std::vector<size_t>& which, const std::string& name) const {
  return std::any_of(which.begin(), which.end(), [&](size_t d) { return devices_[d].name == name; });
}

bool plan_devices::add(const device_info& device, bool saved) {
  devices_.push_back(device);
  stated_.push_back(device.profile);
  if (!claimed_.empty())
    claimed_.push_back(device);
  if (!allows(device) || (saved && (!has_name(first_, device.name) || has_name(usable_, device.name))))
    return false;
  usable_.push_back(devices_.size() - 1);
  order_usable();
  return true;
}

void plan_devices::lower_memory(size_t device, int64_t needed) {
  if (claimed_.empty())
    claimed_ = devices_;
  // It has less than it claims, and less than the plan needed. How much less is not known, so it is lowered step by
  // step.
  devices_[device].memory_bytes = std::min(devices_[device].memory_bytes, needed) / 8 * 7;
}

bool plan_devices::restore_memory() {
  if (claimed_.empty())
    return false;
  devices_ = std::exchange(claimed_, {});
  return true;
}

} // namespace troupe
