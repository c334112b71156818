// Bound plans on their devices: installed before their first chunk, retired when the cache has let go of them and no execution runs
// them. Arena slots belong to layouts, which bound plans share: a slot's memory serves one execution after the other, whatever their
// dims. Not thread-safe: a session machine is the only user.
#pragma once

#include "run/commands.hpp"
#include "run/session_plans.hpp"

#include <unordered_map>

namespace troupe {

/// A bound plan on its devices.
struct installation {
  bound_plan_ptr bound;
  planned_model_ptr planned;
  uint32_t in_use = 0; // executions that run it
  bool evicted = false;
  run_time started;     // by the steady clock, for statistics
  uint32_t pending = 0; // devices that have not answered
};

class installations {
public:
  /// `limits`: bytes that plans may use, by device of the session. Orders are added to `commands`.
  installations(std::vector<int64_t> limits, std::vector<command>& commands);

  void add_device(int64_t limit);

  /// Returns whether an execution of `bound` finds room: a slot that is free, or one more within every device's limit beside what is
  /// there.
  bool has_room(const planned_model& planned, const bound_plan& bound) const;

  /// Installs `bound` where it is not installed, and takes an arena slot for an execution of it.
  uint32_t take_slot(const bound_plan_ptr& bound, const planned_model_ptr& planned);
  /// Gives a slot back. A bound plan that was evicted goes with its last execution.
  void leave(uint64_t bound_plan, uint32_t slot);

  /// Takes a device's answer to an install. Returns the installation, null where it is retired.
  installation* answered(size_t device, const plan_installed& answer);
  /// Returns whether the device has not answered an install, of retired bound plans too.
  bool is_installing(size_t device) const { return !unanswered_[device].empty(); }
  /// Expects no answers of a device any more.
  void forget_device(size_t device) { unanswered_[device].clear(); }

  /// Returns the bound plans that nobody runs, `wanted` aside.
  std::vector<uint64_t> idle(uint64_t wanted = 0) const;
  /// Retires bound plans that have left the cache, those in use when nobody runs them any more.
  void evict(std::span<const uint64_t> bound_plans);
  void retire_all();

private:
  /// Arena slots of a layout, for the executions of all its bound plans.
  struct slot_pool {
    std::vector<uint32_t> free;
    uint32_t count = 0;         // handed out so far
    uint32_t installations = 0; // of bound plans with this layout
    arena_layout_ptr layout;
    planned_model_ptr planned;
  };

  void install(installation& fresh);
  void retire(uint64_t bound_plan);

  std::vector<int64_t> limits_;
  std::vector<command>& commands_;
  std::unordered_map<uint64_t, installation> installed_; // by bound plan id
  std::unordered_map<uint64_t, slot_pool> slots_;        // by layout id
  std::vector<std::vector<uint64_t>> unanswered_;        // by device: bound plans
};

} // namespace troupe
