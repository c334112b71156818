// What a bound session carries from run to run, the last host copy of it, and the steps since: which values a run
// takes, when a copy is due, where the session goes back to, and what it can repeat from there. Plain bookkeeping: its
// user runs, copies, and says how that ended.
//
// Steps are runs that ended well, counted from the one that was given all bound inputs, step 1; what it was given is
// step 0's state and the first checkpoint. A copy is of the values of one step: these never change, so it is made while
// later steps run. One copy is on its way at a time, and the last complete one is kept. What is on its way when the
// state begins anew or goes back counts for nothing: the caller may repeat steps with other inputs.
//
// Not thread-safe.
#pragma once

#include "run/request.hpp"
#include "run/step_log.hpp"

#include <limits>
#include <optional>

namespace troupe {

class bound_state {
public:
  /// `places`: the pairs by position (`check_bindings`). `interval`: steps between two copies; 0: copies are made only
  /// for `log_bytes`, above which steps are not kept (`step_log`).
  bound_state(std::vector<output_binding> pairs, std::vector<carried_pair> places, uint64_t interval,
              int64_t log_bytes);

  const std::vector<output_binding>& pairs() const { return pairs_; }
  /// Whether the caller has asked for checkpoints.
  bool has_interval() const { return interval_ > 0; }
  bool keeps_copies() const { return has_interval() || log_.keeps_steps(); }
  const step_log& log() const { return log_; }
  /// Returns how many bytes of initial values are kept as the first copy; more are copied when they are made.
  int64_t most_initial_bytes() const {
    return has_interval() ? std::numeric_limits<int64_t>::max() : log_.most_initial_bytes();
  }
  /// Returns the step whose values these are.
  uint64_t step() const { return step_; }
  /// Returns a bound output's value; throws `errc::invalid_argument` where there is none.
  const device_tensor& value(const std::string& output) const;

  /// Returns whether a run is given all bound inputs: the state begins anew with it.
  bool begins_with(const named_tensors& inputs, const run_options& options) const;
  /// Returns what a run takes besides what it is given by name: bound inputs, for which it leaves bound outputs where
  /// they are made. Throws `errc::invalid_input` where there is no value yet.
  carried_values carry(const named_tensors& inputs, const run_options& options) const;

  /// A run has ended well and left these values, by pair; null `step`: it repeats one that is kept. Returns the values
  /// before.
  carried_bundle advance(carried_bundle made, std::optional<kept_step> step = {});
  /// The same of a run with which the state begins anew; `initial`: its bound inputs, or none to take the first copy
  /// after this run. Those on devices are copied as others are: until then there is no checkpoint.
  carried_bundle begin(carried_bundle made, named_device_tensors initial, std::optional<kept_step> step = {});

  /// Returns the values to copy now, by input; empty unless a copy is due. It is on its way from then on.
  named_device_tensors begin_copy();
  bool is_copying() const { return copying_.has_value(); }
  /// The copy on its way is there, by input, or failed: then the one before stays.
  void end_copy(named_tensors copies);
  void drop_copy() { copying_.reset(); }

  /// Makes the values those of the last copy again, in the host's memory. Returns whether there is one.
  bool go_back();
  /// Returns whether all steps since the last copy are kept.
  bool can_repeat() const { return last_ && log_.reaches(last_->step + 1); }
  /// Steps after this one will be other ones than those that are kept, or are not kept any more.
  void forget_later_steps() { log_.begin(step_ + 1); }

private:
  struct checkpoint {
    uint64_t step = 0;
    named_tensors values; // by input
  };

  uint64_t step_after_interval() const;
  /// Returns the pairs whose inputs a run is given by name.
  std::vector<size_t> pairs_given(const named_tensors& inputs, const run_options& options) const;

  const std::vector<output_binding> pairs_;
  std::map<std::string, size_t> pair_of_; // by input
  const std::shared_ptr<const std::vector<carried_pair>> places_;
  const uint64_t interval_;
  step_log log_;
  uint64_t step_ = 0;
  carried_bundle values_;           // by pair; null before the first run has ended well
  std::optional<checkpoint> last_;  // the last complete copy
  std::optional<uint64_t> copying_; // the step of the one on its way
  named_device_tensors initial_;    // step 0's values, by input, if they are to be copied
  uint64_t next_copy_ = 0;          // the first step at which one is due, however full the log is
};

} // namespace troupe
