// What a session knows about its model: from inputs to a bound plan, with everything cached that can be used again.
//
// Nothing is made here: a lookup finds what is there, or returns the job that makes what is missing (run/plan_job.hpp)
// and is asked again after that. One job at a time. So a lookup never waits for a rewrite, a plan or a binding.
//
// If a device lacks memory for a binding, that one and others that do not fit get a plan that spills to the other
// devices (`replaced_plans`); if it has no kernel for a binding's dims, that binding gets a plan made for these dims. A
// body's binding has the memory that the executions around it leave.
//
// Three levels, each a cache: the model is specialised to the ranks of inputs whose shape the file does not state and
// to the values of inputs that decide shapes (`specialisations`), planned for a device set (`plan_devices`), and bound
// to concrete dims (`bound_plans`; `replaced_plans` has what is run instead of a binding). A change of any of them is a
// miss. Plans are kept by `plan_key`: a device set and free memory that were there before, or nearly, find the plan
// that was made for them. Bound plans hold memory on devices: a change of the device set forgets all of them, the
// eviction of a plan its own. Not thread-safe: the session machine is the only user.
#pragma once

#include "run/plan_beside.hpp"
#include "run/replaced_plans.hpp"
#include "run/specialisations.hpp"
#include "run/symbol_forecast.hpp"

namespace troupe {

class session_plans {
public:
  /// `lost`: those of the devices, by index, that are lost already. `only`: the names of the devices that plans may
  /// use, in the order of plans; empty: all.
  session_plans(model_ptr m, std::vector<device_info> devices, const std::vector<size_t>& lost = {},
                std::vector<std::string> only = {});
  session_plans(const session_plans&) = delete; // its jobs refer to it
  session_plans& operator=(const session_plans&) = delete;

  /// What can be made before there are inputs.
  struct ahead {
    std::shared_ptr<const graph> program; // rewritten, before it was planned
    hash128 hash;                         // of the program
    planned_model_ptr planned;
  };
  /// Plans ahead, so that a model's errors show when it is loaded. Returns nulls if that needs inputs. `other`: what
  /// this has returned for other devices; the same model is not rewritten again then.
  ahead prepare_ahead(const ahead& other = {});

  /// Returns what a run with these inputs executes, or the job for what is missing; `made`: how jobs for it have ended
  /// since it was first asked for. Throws what checking throws.
  std::variant<prepared_run, plan_job> prepare(const given_inputs& inputs, const plan_outcome& made = {});

  /// Returns the run that is likely to follow, without its bound plan if that is not made yet: a decoder's next step.
  /// To be told of one run after the other.
  std::optional<prepared_run> likely_next(const prepared_run& run);
  /// Returns the job that binds it, and what that has made: null if there is no memory for it.
  plan_job bind_job(const prepared_run& next);
  bound_plan_ptr find_bound(const prepared_run& next) { return bound_.find(segment_key(next, 0)); }
  /// Returns whether `prepare` would find the same.
  bool find_again(const prepared_run& next);

  /// Its `host_inputs` must be in the host's memory before `prepare`.
  const model& known_model() const { return *model_; }

  /// Returns what an execution of a body with these inputs executes, or the job for what is missing; `around` are the
  /// symbols' values in the execution that it is for, `taken` the bytes that the run uses meanwhile, by device of the
  /// plan. Throws `errc::invalid_input` if the inputs are not what was planned, `memory_shortage`.
  std::variant<prepared_run, plan_job> prepare_body(const planned_model_ptr& body, std::span<const tensor> inputs,
                                                    const bindings& around, std::vector<int64_t> taken,
                                                    const plan_outcome& made = {});

  /// What spills goes to the devices of its plan, so bodies of a plan for other devices cannot spill any more:
  /// `prepare_body` throws `memory_shortage` then.
  const plan_devices& devices() const { return devices_; }

  /// Returns a segment of the run's plan bound to its symbols, or the job for it, which ends with `memory_shortage` if
  /// it does not fit (see `replaced_plans::spill`). Throws it where it does not fit beside what is taken.
  std::variant<bound_plan_ptr, plan_job> bind(prepared_run& run, uint32_t segment, const plan_outcome& made = {});
  replaced_plans& replaced() { return instead_; }
  /// What leaves it goes from devices, too.
  bound_plans& bound() { return bound_; }

  /// Has plans count on the speeds that a plan was made for, and runs that begin from now on use that plan, if there is
  /// one. Plans that were made before stay.
  void use(const plan_beside& made);

  /// Adds a device after the others. A saved plan uses it only if it takes the place of one of that name that was lost.
  void add_device(const device_info& device);
  /// Removes a device (an index among the engine's devices) from the set.
  void remove_device(size_t device);
  /// Takes note that a device could not give the `needed` bytes of a plan, whatever it had claimed: from here on it
  /// counts as having an eighth less, which is another `plan_key`.
  void lower_memory(size_t device, int64_t needed);
  /// Believes again what devices claim.
  void restore_memory();

  /// Returns the counters, those of the caches of bound plans and of layouts included.
  session_stats stats() const;
  /// Those that its user counts: runs, runs that were found again, the time that installs take.
  session_stats& counters() { return stats_; }

private:
  std::variant<prepared_run, plan_job>
  prepare_checked(const given_inputs& inputs, const std::vector<given_inputs::facts>& given, const plan_outcome& made);

  // -- jobs
  plan_job plan_job_for(const specialisation& s, plan_use use, const hash128& key);
  plan_job bind_job(const prepared_run& run, uint32_t segment, const hash128& key);

  hash128 key_of(specialisation& s, plan_use use);
  /// Looks the first segment of `run.asked`, or of what replaces it, up.
  std::optional<plan_job> bind_first(prepared_run& run, const plan_outcome& made);
  /// To be called when devices, or their memory, have changed.
  void devices_changed();

  model_ptr model_;
  plan_devices devices_;
  specialisations programs_;
  plan_cache<planned_model_ptr> plans_; // by plan_key
  bound_plans bound_;                   // by `segment_key`
  replaced_plans instead_;
  symbol_forecast forecast_;
  session_stats stats_;
};

} // namespace troupe
