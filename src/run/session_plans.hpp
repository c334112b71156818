// What a session knows about its model: from inputs to a bound plan, with everything cached that can be used again.
//
// Where a device lacks memory for a binding, that binding alone gets a plan that spills to the other devices; where it has no kernel
// for a binding's dims, one made for these dims. A body's binding has the memory that the executions around it leave.
//
// Three levels, each a cache: the model is specialised to the ranks of inputs whose shape the file does not state and to the
// values of inputs that decide shapes (rewrite), planned for a device set, and bound to concrete dims. A change of any of
// them is a miss. Plans are kept by `plan_key`: a device set and free memory that were there before, or nearly, find the plan that
// was made for them. Bound plans hold memory on devices: a change of the device set forgets all of them, the eviction of a plan
// its own. They share arena layouts, by buckets of their dims (plan/layout_buckets.hpp).
// Not thread-safe: the session machine is the only user.
#pragma once

#include "plan/layout_buckets.hpp"
#include "run/model.hpp"

#include <array>
#include <utility>

namespace troupe {

/// What one run needs of the caches.
struct prepared_run {
  planned_model_ptr source;
  bindings symbols; // what the inputs say
  bool cached = false;
  std::vector<int64_t> taken; // bytes that executions around a body use, by device of the plan; empty for a model
  bound_plan_ptr bound;       // the first segment
  planned_model_ptr asked;    // `source`, or where that spills: what it stands for …
  hash128 key;                // … for this binding of it
};

class session_plans {
public:
  session_plans(model_ptr m, std::vector<device_info> devices);

  /// Plans ahead where that needs no inputs, so that a model's errors show when it is loaded.
  void prepare_ahead();

  /// Returns what a run with these inputs executes. Throws what checking, rewriting and planning throw.
  prepared_run prepare(const given_inputs& inputs);

  /// Returns the names of inputs that must be in the host's memory before `prepare`: their values decide shapes.
  const std::vector<std::string>& host_inputs() const { return model_->host_inputs; }
  /// Throws where a run's inputs, or the outputs that it keeps, are not the model's.
  void check(const given_inputs& inputs, const std::vector<std::string>& keep) const;

  /// Returns what an execution of a body with these inputs executes; `around` are the symbols' values in the execution that
  /// it is for, `taken` the bytes that the run uses meanwhile, by device of the plan. Throws `errc::invalid_input` where the
  /// inputs are not what was planned, and what binding throws.
  prepared_run prepare_body(const planned_model_ptr& body, std::span<const tensor> inputs, const bindings& around,
                            std::vector<int64_t> taken);

  /// Returns whether a plan is for the devices as they are: none of them has been removed since. What spills goes to the devices of
  /// its plan, so bodies of another plan cannot spill any more: `prepare_body` throws `memory_shortage` then.
  bool is_current(const planned_model& planned) const { return planned.devices == usable_; }

  /// Returns a segment of the run's plan bound to its symbols, from the cache where it is there; sets `run.cached` to false
  /// where it was not. Throws `memory_shortage` where it does not fit: see `spill`.
  bound_plan_ptr bind(prepared_run& run, uint32_t segment);
  /// Sees to it that the next run with the binding that `run` began with gets a plan in which all segments fit that `run.symbols`
  /// state; `why` is how it did not. Throws `errc::out_of_memory` where there is none.
  void spill(const prepared_run& run, const memory_shortage& why);
  /// Sees to it that the next run gets a plan for these dims where a device has refused its part of the binding, because its kernels are
  /// for others. Returns false if such a plan was refused, or if a saved plan says what runs where. Throws what planning throws.
  bool plan_exactly(const prepared_run& run);

  /// Removes a device (an index among the engine's devices) from the set.
  void remove_device(size_t device);
  /// Takes note that a device could not give the `needed` bytes of a plan, whatever it had claimed: from here on it counts as
  /// having an eighth less, which is another `plan_key`.
  void lower_memory(size_t device, int64_t needed);
  /// Believes again what devices claim.
  void restore_memory();
  /// Forgets all bound plans, because one could not be installed.
  void forget_bound_plans();
  /// Forgets the bound plans with these ids.
  void forget_bound_plans(std::span<const uint64_t> ids);

  /// Returns ids of bound plans that have left the cache since the last call.
  std::vector<uint64_t> take_evicted() { return std::exchange(evicted_, {}); }

  /// Returns the counters, those of the caches of bound plans and of layouts included.
  session_stats stats() const;
  /// Counts a run; adds the time that an install took.
  void count_run() { ++stats_.runs; }
  void add_plan_ms(double ms) { stats_.plan_ms += ms; }

private:
  struct specialisation {
    std::shared_ptr<const graph> program;
    hash128 hash;      // of the program
    bindings expected; // that plans count on: the first run's, so that the key stays the same from run to run
    bool draft = true; // `expected` are not a run's yet
    /// Of the plans on the devices as they are, for values that come and go and for those that stay on devices; nullopt until
    /// it is asked for.
    std::array<std::optional<hash128>, 2> keys;
  };

  specialisation& specialise(const given_inputs& inputs);
  /// The caller's pins without those to devices that are lost.
  std::vector<placement_pin> usable_pins() const;
  /// Returns the plan on the devices as they are; `stay`: for runs whose inputs lie on devices. Sets `*cached` to whether it was
  /// there.
  planned_model_ptr plan_of(specialisation& s, bool stay, bool* cached);
  planned_model_ptr describe(std::shared_ptr<const plan> compiled);
  /// From now on `made` is run where `run` began with a binding that a device cannot take.
  void run_instead(const prepared_run& run, std::shared_ptr<const plan> made);
  /// `devices` are the plan's, see `planned_model`.
  std::shared_ptr<planned_model> describe_body(std::shared_ptr<const plan> compiled,
                                               const std::vector<size_t>& devices);
  plan_options options_for(const bindings& symbols, bool stay) const;
  /// Whether plans depend on where values lie between runs: some device copies beside work.
  bool copies_matter() const;
  std::vector<device_info> usable_devices() const;
  /// Binds the first segment of `run.asked`; where a device lacks memory for it, by another plan that fits all of them.
  void bind_first(prepared_run& run);
  /// To be called when `usable_` or `devices_` have changed.
  void devices_changed();
  /// Forgets the bound plans for which `unwanted(bound_plan)` holds.
  template <class Predicate>
  void forget_bound_if(Predicate&& unwanted);
  /// Forgets the bound plans of a plan that is not kept any more.
  void forget_bound_plans_of(const planned_model& planned);

  model_ptr model_;
  std::vector<device_info> devices_;
  std::vector<device_info> claimed_; // `devices_` before some memory was lowered; empty where none was
  std::vector<size_t> usable_;       // indices into devices_
  plan_cache<specialisation> specialisations_;
  plan_cache<planned_model_ptr> plans_; // by plan_key
  plan_cache<bound_plan_ptr> bound_;
  layout_buckets layouts_;
  plan_cache<planned_model_ptr>
      instead_; // by `prepared_run::key` of a binding that a device cannot take: what is run instead
  std::vector<uint64_t> evicted_;
  uint64_t plans_made_ = 0;
  session_stats stats_;
};

} // namespace troupe
