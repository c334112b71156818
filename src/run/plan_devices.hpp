// The devices for which a session's plans are made: those of the engine that live, that plans may use, in the order of
// plans, with the memory that they have or are found to have. Not thread-safe.
#pragma once

#include "run/model.hpp"

namespace troupe {

/// What a plan is for, beside its devices and dims.
struct plan_use {
  static constexpr size_t count = 4;

  bool stay = false;  // inputs and outputs mostly stay on their device between runs
  bool whole = false; // runs that are too small for the cut of policy `split`

  size_t index() const { return (stay ? 1 : 0) + (whole ? 2 : 0); }
};

class plan_devices {
public:
  /// `lost`: those of `all` (indices) that are lost already. `only`: the names of those that plans may use, in
  /// the order of plans; empty: all.
  plan_devices(std::vector<device_info> all, const std::vector<size_t>& lost, std::vector<std::string> only);

  /// Returns the names of the devices that plans may use, in the order of plans; empty: all.
  const std::vector<std::string>& only() const { return only_; }
  /// Returns those that plans use now, as indices among the engine's devices.
  const std::vector<size_t>& usable() const { return usable_; }
  std::vector<device_info> infos() const;
  /// Returns whether a plan is for the devices as they are: all of its devices are still there.
  bool are_of(const planned_model& planned) const { return planned.devices == usable_; }
  /// Returns whether plans may use a device (an index among the engine's devices), as long as it lives.
  bool may_use(size_t device) const { return allows(devices_[device]); }
  /// Whether plans depend on where values are between runs: some device copies beside work.
  bool copies_matter() const;
  bool all_are_cpus() const {
    return std::ranges::none_of(usable_, [&](size_t d) { return devices_[d].gpu.has_value(); });
  }
  plan_options options_for(const model& m, const bindings& symbols, plan_use use) const;
  /// Returns what a plan with these options is for.
  static plan_use use_of(const model& m, const plan_options& options);

  /// Returns what the devices state of their speeds, and what plans count on; by device of the engine.
  const std::vector<device_profile>& stated() const { return stated_; }
  std::vector<device_profile> profiles() const;
  /// Has plans count on other speeds; devices that joined since these were made keep theirs.
  void use(const std::vector<device_profile>& profiles);

  /// Returns the key by which a session keeps a plan for the devices as they are, from the plan's own.
  hash128 kept_key(const hash128& key) const;

  /// Adds and removes a device; returns whether plans are affected. `saved`: they are a saved one, which uses a device
  /// that joins only if it takes the place of one of that name that was lost.
  bool add(const device_info& device, bool saved);
  bool remove(size_t device) { return std::erase(usable_, device) > 0; }
  /// Takes note that a device could not give the `needed` bytes of a plan, whatever it had claimed.
  void lower_memory(size_t device, int64_t needed);
  /// Believes again what devices claim.
  bool restore_memory();

private:
  bool allows(const device_info& device) const;
  /// Brings `usable_` into the order of `only_`.
  void order_usable();
  /// Returns whether some of the devices that `which` (indices) names is called so.
  bool has_name(const std::vector<size_t>& which, const std::string& name) const;

  std::vector<device_info> devices_;
  std::vector<device_profile> stated_;  // by device
  const std::vector<std::string> only_; // see the constructor
  std::vector<size_t> first_; // one of each name that was there from the beginning: a saved plan is for all of them
  std::vector<device_info> claimed_; // `devices_` before some memory was lowered; empty if none was
  std::vector<size_t> usable_;       // indices into devices_
};

} // namespace troupe
