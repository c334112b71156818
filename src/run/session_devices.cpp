#include "run/session_devices.hpp"

#include <algorithm>

namespace troupe {
namespace {

std::string reason(const std::string& why) {
  return why.empty() ? "for an unknown reason" : why;
}

} // namespace

session_devices::session_devices(const std::vector<device_info>& devices, session_plans& plans) : plans_(plans) {
  for (const device_info& d : devices)
    devices_.push_back({.name = d.name, .incarnation = d.incarnation});
}

void session_devices::add(const device_info& device) {
  devices_.push_back({.name = device.name, .incarnation = device.incarnation});
  plans_.add_device(device);
  take_out_leaving();
}

bool session_devices::lose(size_t device, const std::string& why) {
  state& lost = devices_[device];
  if (!lost.lost_because.empty())
    return false;
  lost.lost_because = reason(why);
  leaving_ -= !lost.leaves_because.empty() && !lost.let_go ? 1 : 0;
  plans_.remove_device(device);
  return true;
}

void session_devices::leave(size_t device, const std::string& why) {
  state& d = devices_[device];
  if (!d.lost_because.empty() || !d.leaves_because.empty())
    return;
  d.leaves_because = reason(why);
  ++leaving_;
  take_out_leaving();
}

void session_devices::take_out_leaving() {
  const auto stays = [](const state& d) { return d.lost_because.empty() && d.leaves_because.empty(); };
  if (std::none_of(devices_.begin(), devices_.end(), stays))
    return; // better there, for a while, than nowhere
  for (size_t d = 0; d < devices_.size(); ++d)
    if (!devices_[d].leaves_because.empty() && !std::exchange(devices_[d].is_out, true))
      plans_.remove_device(d);
}

void session_devices::check_left() const {
  std::string causes;
  for (size_t d = 0; d < devices_.size(); ++d) {
    const state& device = devices_[d];
    if (!plans_.devices().may_use(d))
      continue;
    if (device.lost_because.empty() && !device.is_out)
      return;
    causes += device.lost_because.empty() ? fmt::format("device '{}' leaves: {}; ", device.name, device.leaves_because)
                                          : fmt::format("device '{}' is lost: {}; ", device.name, device.lost_because);
  }
  fail(errc::device_lost, "{}no device is left", causes);
}

size_t session_devices::home_of(const resident& value, const std::string& input, bool copy) const {
  size_t home = devices_.size();
  for (size_t d = 0; d < devices_.size(); ++d)
    if (devices_[d].name == value.device() && devices_[d].incarnation == value.incarnation() &&
        (home == devices_.size() || devices_[d].lost_because.empty()))
      home = d;
  if (home == devices_.size())
    fail(errc::invalid_input, "input '{}' is on device '{}', which this engine does not have", input, value.device());
  if (const std::string& why = devices_[home].lost_because; !why.empty() && !copy)
    fail(errc::device_lost, "input '{}' lay on device '{}', which is lost ({}): give it anew", input, value.device(),
         why);
  return home;
}

} // namespace troupe
