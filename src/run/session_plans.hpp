// What a session knows about its model: from inputs to a bound plan, with everything cached that can be used again.
//
// Nothing is made here: a lookup finds what is there, or returns the job that makes what is missing (run/plan_job.hpp)
// and is asked again after that. One job at a time. So a lookup never waits for a rewrite, a plan or a binding.
//
// If a device lacks memory for a binding, that binding alone gets a plan that spills to the other devices; if it has no
// kernel for a binding's dims, one made for these dims. A body's binding has the memory that the executions around it
// leave.
//
// Three levels, each a cache: the model is specialised to the ranks of inputs whose shape the file does not state and
// to the values of inputs that decide shapes (rewrite), planned for a device set, and bound to concrete dims. A change
// of any of them is a miss. Plans are kept by `plan_key`: a device set and free memory that were there before, or
// nearly, find the plan that was made for them. Bound plans hold memory on devices: a change of the device set forgets
// all of them, the eviction of a plan its own. They share arena layouts, by buckets of their dims
// (plan/bind/layout_buckets.hpp). Not thread-safe: the session machine is the only user.
#pragma once

#include "plan/bind/layout_buckets.hpp"
#include "run/model.hpp"
#include "run/specialisations.hpp"
#include "run/symbol_forecast.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

/// What one run needs of the caches.
struct prepared_run {
  planned_model_ptr source;
  bindings symbols; // what the inputs say
  bool cached = false;
  std::vector<int64_t> taken; // bytes that executions around a body use, by device of the plan; empty for a model
  bound_plan_ptr bound;       // the first segment
  planned_model_ptr asked;    // `source`, or if that spills: what it stands for …
  hash128 key;                // … for this binding of it
  hash128 asked_key;          // by which `asked` is kept; not of a body's
};

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
  bound_plan_ptr find_bound(const prepared_run& next);
  /// Returns whether `prepare` would find the same.
  bool find_again(const prepared_run& next);
  /// Counts a run that was found so.
  void count_found() {
    ++stats_.plans.hits;
    ++stats_.bound_plans.hits;
  }

  /// Returns the names of inputs that must be in the host's memory before `prepare`: their values decide shapes.
  const std::vector<std::string>& host_inputs() const { return model_->host_inputs; }
  const std::vector<value_info>& inputs() const { return model_->inputs; }
  /// Throws if the outputs that a run keeps are not the model's.
  void check_kept(const std::vector<std::string>& keep) const { troupe::check_kept(*model_, keep); }

  /// Returns what an execution of a body with these inputs executes, or the job for what is missing; `around` are the
  /// symbols' values in the execution that it is for, `taken` the bytes that the run uses meanwhile, by device of the
  /// plan. Throws `errc::invalid_input` if the inputs are not what was planned, `memory_shortage`.
  std::variant<prepared_run, plan_job> prepare_body(const planned_model_ptr& body, std::span<const tensor> inputs,
                                                    const bindings& around, std::vector<int64_t> taken,
                                                    const plan_outcome& made = {});

  /// Returns whether a plan is for the devices as they are: none of them has been removed since. What spills goes to
  /// the devices of its plan, so bodies of another plan cannot spill any more: `prepare_body` throws `memory_shortage`
  /// then.
  bool is_current(const planned_model& planned) const { return planned.devices == usable_; }

  /// Returns a segment of the run's plan bound to its symbols, or the job for it, which ends with `memory_shortage` if
  /// it does not fit (see `spill`). Throws it where it does not fit beside what is taken.
  std::variant<bound_plan_ptr, plan_job> bind(prepared_run& run, uint32_t segment, const plan_outcome& made = {});
  /// Sees to it that the next run with the binding that `run` began with gets a plan in which all segments fit that
  /// `run.symbols` state, or `errc::out_of_memory` if there is none; `why` is how it did not.
  void spill(const prepared_run& run, const memory_shortage& why);
  /// Sees to it that the next run gets a plan for these dims if a device has refused its part of the binding, because
  /// its kernels are for others. Returns false if such a plan was refused, or if a saved plan says what runs where.
  bool plan_exactly(const prepared_run& run);

  /// Returns whether plans may use a device (an index among the engine's devices), as long as it lives.
  bool may_use(size_t device) const { return allows(devices_[device]); }
  /// Adds a device after the others. A saved plan uses it only if it takes the place of one of that name that was lost.
  void add_device(const device_info& device);
  /// Removes a device (an index among the engine's devices) from the set.
  void remove_device(size_t device);
  /// Takes note that a device could not give the `needed` bytes of a plan, whatever it had claimed: from here on it
  /// counts as having an eighth less, which is another `plan_key`.
  void lower_memory(size_t device, int64_t needed);
  /// Believes again what devices claim.
  void restore_memory();
  /// Forgets all bound plans, because one could not be installed.
  void forget_bound_plans();
  void forget_bound_plan(uint64_t id);

  /// Returns ids of bound plans that have left the cache since the last call.
  std::vector<uint64_t> take_evicted() { return std::exchange(evicted_, {}); }

  /// Returns the counters, those of the caches of bound plans and of layouts included.
  session_stats stats() const;
  /// Counts a run; adds the time that an install took.
  void count_run() { ++stats_.runs; }
  void add_plan_ms(double ms) { stats_.plan_ms += ms; }

private:
  /// What is run instead of a binding that a device cannot take.
  struct replacement {
    planned_model_ptr planned; // null until it is made
    std::function<std::shared_ptr<const plan>()> make;
    bool fits = false; // it is the one that spills
  };
  using replacement_ptr = std::shared_ptr<replacement>;

  std::variant<prepared_run, plan_job>
  prepare_checked(const given_inputs& inputs, const std::vector<given_inputs::facts>& given, const plan_outcome& made);

  // -- jobs
  plan_job plan_job_for(const specialisation& s, bool stay, const hash128& key);
  plan_job bind_job(const prepared_run& run, uint32_t segment, const hash128& key);
  plan_job replace_job(const prepared_run& run, const replacement_ptr& with);

  hash128 key_of(specialisation& s, bool stay);
  static hash128 key_of(const prepared_run& run);
  static hash128 bound_key_of(const prepared_run& run, uint32_t segment);
  /// Looks the first segment of `run.asked`, or of what replaces it, up.
  std::optional<plan_job> bind_first(prepared_run& run, const plan_outcome& made);
  /// If a plan that spills can help a run that has found no memory for its first segment: sees to it that it gets one.
  bool spills(const prepared_run& run, const memory_shortage& why);
  /// Returns what is run instead of the binding that `run` begins with; null if it is run itself.
  replacement_ptr replacement_of(const prepared_run& run);
  void run_instead(const prepared_run& run, replacement with);

  /// Returns whether plans may use a device of that name.
  bool allows(const device_info& device) const;
  /// Brings `usable_` into the order of `only_`.
  void order_usable();
  /// Returns whether some of the devices that `which` (indices) names is called so.
  bool has_name(const std::vector<size_t>& which, const std::string& name) const;
  /// The caller's pins without those to devices that are lost.
  std::vector<placement_pin> usable_pins() const;
  plan_options options_for(const bindings& symbols, bool stay) const;
  /// Whether plans depend on where values are between runs: some device copies beside work.
  bool copies_matter() const;
  std::vector<device_info> usable_devices() const;
  bool all_are_cpus() const {
    return std::ranges::none_of(usable_, [&](size_t d) { return devices_[d].gpu.has_value(); });
  }
  /// To be called when `usable_` has changed.
  void device_set_changed();
  /// To be called when `usable_` or `devices_` have changed.
  void devices_changed();
  void forget_layouts();
  /// Forgets the bound plans for which `unwanted(bound_plan)` holds.
  template <class Predicate>
  void forget_bound_if(Predicate&& unwanted);
  /// Forgets the bound plans of a plan that is not kept any more; nothing if there is none.
  void forget_bound_plans_of(const planned_model_ptr& planned);

  model_ptr model_;
  std::vector<device_info> devices_;
  const std::vector<std::string> only_; // see the constructor
  std::vector<size_t> first_; // one of each name that was there from the beginning: a saved plan is for all of them
  std::vector<device_info> claimed_; // `devices_` before some memory was lowered; empty if none was
  std::vector<size_t> usable_;       // indices into devices_
  specialisations programs_;
  plan_cache<planned_model_ptr> plans_; // by plan_key
  plan_cache<bound_plan_ptr> bound_;
  symbol_forecast forecast_;
  std::shared_ptr<layout_buckets> layouts_; // used by the job that binds, and by no other meanwhile
  plan_cache<replacement_ptr> instead_;     // by `prepared_run::key`
  std::vector<uint64_t> evicted_;
  session_stats stats_;
};

} // namespace troupe
