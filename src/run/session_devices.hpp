// What a session knows of its devices beside what plans say: which are lost, which leave.
//
// A device that leaves in order is out of new plans as soon as another one is left, while runs in flight go on there.
// When nothing of the session needs it, it may go. Not thread-safe.
#pragma once

#include "run/session_plans.hpp"

namespace troupe {

class session_devices {
public:
  /// `devices` in the order in which the session numbers them; those that are lost or leave are taken out of `plans`.
  session_devices(const std::vector<device_info>& devices, session_plans& plans);

  const std::string& name(size_t device) const { return devices_[device].name; }
  /// Adds a device after the others.
  void add(const device_info& device);
  /// Takes a device out for good. Returns false if it is lost already.
  bool lose(size_t device, const std::string& why);
  void leave(size_t device, const std::string& why);
  /// Lets those go that leave and that nothing needs any more (`needs(device)`); returns them.
  template <class Needs>
  std::vector<size_t> let_go(Needs&& needs) {
    std::vector<size_t> gone;
    for (size_t d = 0; leaving_ > 0 && d < devices_.size(); ++d)
      if (state& device = devices_[d]; device.is_out && !device.let_go && device.lost_because.empty() && !needs(d)) {
        device.let_go = true;
        --leaving_;
        gone.push_back(d);
      }
    return gone;
  }

  /// Throws `errc::device_lost`, naming all, if no device is left.
  void check_left() const;
  /// Returns the index of the device that a value is on, lost or not. Throws if there is none, and if it is lost and
  /// there is no `copy` of the value; `input` names it in the message.
  size_t home_of(const resident& value, const std::string& input, bool copy) const;

private:
  struct state {
    std::string name;
    uint64_t incarnation = 0;
    std::string lost_because;   // empty while it lives
    std::string leaves_because; // empty unless it leaves
    bool is_out = false;        // it leaves, and new plans do not use it
    bool let_go = false;        // … nor does anything else
  };

  /// Takes those that leave out of new plans if another device is left.
  void take_out_leaving();

  session_plans& plans_;
  std::vector<state> devices_;
  size_t leaving_ = 0; // devices that have not been let go, nor lost
};

} // namespace troupe
