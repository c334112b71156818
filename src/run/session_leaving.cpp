// Devices that leave in order: what is in flight there ends well, what begins goes elsewhere.
#include "run/session_machine.hpp"

#include <algorithm>

namespace troupe {

void session_machine::leave_device(size_t device, const std::string& why) {
  device_state& d = devices_[device];
  if (!d.lost_because.empty() || !d.leaves_because.empty())
    return;
  d.leaves_because = why.empty() ? "for an unknown reason" : why;
  ++leaving_;
  take_out_leaving();
}

void session_machine::take_out_leaving() {
  const auto stays = [](const device_state& d) { return d.lost_because.empty() && d.leaves_because.empty(); };
  if (std::none_of(devices_.begin(), devices_.end(), stays))
    return; // better there, for a while, than nowhere
  for (size_t d = 0; d < devices_.size(); ++d)
    if (!devices_[d].leaves_because.empty() && !std::exchange(devices_[d].is_out, true))
      plans_->remove_device(d);
  retire_evicted();
}

bool session_machine::needs(size_t device) const {
  return installed_.is_installing(device) || fetches_from(device) ||
         std::any_of(executions_.begin(), executions_.end(),
                     [&](const auto& entry) { return runs_on(*entry.second->planned(), device); });
}

void session_machine::let_devices_go() {
  for (size_t d = 0; d < devices_.size(); ++d) {
    device_state& device = devices_[d];
    if (!device.is_out || device.let_go || !device.lost_because.empty() || needs(d))
      continue;
    if (installed_.is_on(d)) // what runs in flight have bound meanwhile
      plans_->forget_bound_plans();
    retire_evicted();
    device.let_go = true;
    --leaving_;
    commands_.push_back(let_device_go{d});
  }
}

} // namespace troupe
