// Bound plans on their devices: installed before their first chunk, retired when the cache has let go of them and no
// execution runs them. Arena slots belong to layouts, which bound plans share: a slot's memory serves one execution
// after the other, whatever their dims. Not thread-safe: a session machine is the only user.
#pragma once

#include "run/commands.hpp"
#include "run/ledger_account.hpp"
#include "run/session_plans.hpp"

#include <map>
#include <unordered_map>

namespace troupe {

/// A bound plan on its devices.
struct installation {
  bound_plan_ptr bound;
  planned_model_ptr planned;
  uint32_t in_use = 0; // executions that run it
  bool evicted = false;
  uint64_t last_use = 0; // grows with each use
  run_time started;      // by the steady clock, for statistics
  uint32_t pending = 0;  // devices that have not answered
};

class installations {
public:
  /// `accounts`: with the ledgers of the session's devices. Orders are added to `commands`.
  installations(ledger_accounts accounts, std::vector<command>& commands);

  void add_device(std::shared_ptr<ledger_account> account);

  /// Installs `bound` where it is not installed, and takes an arena slot for an execution of it: one that is free, or
  /// one more. Returns nullopt if there is no memory for it: see `waits`.
  std::optional<uint32_t> take_slot(const bound_plan_ptr& bound, const planned_model_ptr& planned);
  /// The same, whatever the devices' limits.
  uint32_t take_slot_anyway(const bound_plan_ptr& bound, const planned_model_ptr& planned);
  /// Installs `bound` where it is not installed, without a slot, if the memory that its plan's weights take is taken
  /// already.
  void install_ahead(const bound_plan_ptr& bound, const planned_model_ptr& planned);
  /// Gives a slot back. A bound plan that was evicted goes with its last execution.
  void leave(uint64_t bound_plan, uint32_t slot);

  /// Takes a device's answer to an install. Returns the installation, null if it is retired.
  installation* answered(size_t device, const plan_installed& answer);
  /// Returns whether all devices have answered the install of a bound plan that an execution runs.
  bool is_ready(uint64_t bound_plan) const { return installed_.at(bound_plan).pending == 0; }
  /// Returns whether the device has not answered an install, of retired bound plans too.
  bool is_installing(size_t device) const { return !unanswered_[device].empty(); }
  /// Returns whether a bound plan is there that uses the device.
  bool is_on(size_t device) const;
  /// Expects no answers of a device any more.
  void forget_device(size_t device) { unanswered_[device].clear(); }

  /// Returns the bound plans that no run uses, `wanted` aside, least recently used first.
  std::vector<uint64_t> idle(uint64_t wanted = 0) const;
  /// Retires bound plans that have left the cache; those in use, when no run uses them any more.
  void evict(std::span<const uint64_t> bound_plans);
  void retire_all();

  // -- memory that other sessions want, or have

  /// Returns whether memory was taken or became free since the last call.
  bool take_moved() { return std::exchange(moved_, false); }
  /// Returns whether a device's memory is waited for that other sessions hold.
  bool waits() const;
  void withdraw();
  /// Returns whether another session waits for memory that is held here, beyond what has been freed.
  bool others_lack() const;
  /// Adds the command that gives back what has been freed since the last call, if there is any.
  void give_back();

private:
  /// Arena slots of a layout, for the executions of all its bound plans.
  struct slot_pool {
    std::vector<uint32_t> free;
    uint32_t count = 0;         // handed out so far
    uint32_t installations = 0; // of bound plans with this layout
    arena_layout_ptr layout;
    planned_model_ptr planned;
  };

  /// Returns the bytes that one more execution of `bound` takes, by device of the session.
  std::vector<int64_t> needed_for(const bound_plan& bound, const planned_model& planned) const;
  bool take_memory(const std::vector<int64_t>& bytes);
  uint32_t occupy(const bound_plan_ptr& bound, const planned_model_ptr& planned);
  /// Returns the installation of `bound`, which is made where there is none.
  installation& install(const bound_plan_ptr& bound, const planned_model_ptr& planned);
  void retire(uint64_t bound_plan);
  /// Counts what a layout's slots held as freed, and the weights with its plan's last.
  void forget(const slot_pool& slots);

  ledger_accounts accounts_;
  std::vector<command>& commands_;
  std::map<uint64_t, installation> installed_;               // by bound plan id
  std::unordered_map<uint64_t, slot_pool> slots_;            // by layout id
  std::unordered_map<const planned_model*, size_t> planned_; // layouts of each plan: its weights are there
  std::vector<int64_t> freed_;                               // by device: not yet given back
  bool moved_ = true;
  uint64_t uses_ = 0;
  std::vector<std::vector<uint64_t>> unanswered_; // by device: bound plans
};

} // namespace troupe
