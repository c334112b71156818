// What a bound session carries from run to run, and the last host copy of it: which values a run takes, when a copy is
// due, and where the session goes back to. Plain bookkeeping: its user runs, copies, and says how that ended.
//
// Steps are runs that ended well, counted from the one that was given all bound inputs, step 1; what it was given is
// step 0's state and the first checkpoint. A copy is of the values of one step: these never change, so it is made while
// later steps run. One copy is on its way at a time, and the last complete one is kept. What is on its way when the
// state begins anew or goes back counts for nothing: the caller may repeat steps with other inputs.
//
// Not thread-safe.
#pragma once

#include "run/request.hpp"

#include <optional>

namespace troupe {

class bound_state {
public:
  /// `places`: the pairs by position (`check_bindings`). `interval`: steps between two copies; 0: there are none.
  bound_state(std::vector<output_binding> pairs, std::vector<carried_pair> places, uint64_t interval);

  const std::vector<output_binding>& pairs() const { return pairs_; }
  bool keeps_copies() const { return interval_ > 0; }
  /// Returns the step whose values these are.
  uint64_t step() const { return step_; }
  /// Returns a bound output's value; throws `errc::invalid_argument` where there is none.
  const device_tensor& value(const std::string& output) const;

  /// Returns whether a run is given all bound inputs: the state begins anew with it.
  bool begins_with(const named_tensors& inputs, const run_options& options) const;
  /// Returns what a run takes besides what it is given by name: bound inputs, for which it leaves bound outputs where
  /// they are made. Throws `errc::invalid_input` where there is no value yet.
  carried_values carry(const named_tensors& inputs, const run_options& options) const;

  /// A run has ended well and left these values, by pair. Returns those before.
  carried_bundle advance(carried_bundle made);
  /// The same of a run with which the state begins anew; `initial`: its bound inputs, if copies are kept. Those on
  /// devices are copied as others are: until then there is no checkpoint. Returns the values before.
  carried_bundle begin(carried_bundle made, named_device_tensors initial);

  /// Returns the values to copy now, by input; empty unless a copy is due. It is on its way from then on.
  named_device_tensors begin_copy();
  bool is_copying() const { return copying_.has_value(); }
  /// The copy on its way is there, by input, or failed: then the one before stays.
  void end_copy(named_tensors copies);
  void drop_copy() { copying_.reset(); }

  /// Makes the values those of the last copy again, in the host's memory. Returns whether there is one.
  bool go_back();

private:
  struct checkpoint {
    uint64_t step = 0;
    named_tensors values; // by input
  };

  /// Returns the pairs whose inputs a run is given by name.
  std::vector<size_t> pairs_given(const named_tensors& inputs, const run_options& options) const;

  const std::vector<output_binding> pairs_;
  std::map<std::string, size_t> pair_of_; // by input
  const std::shared_ptr<const std::vector<carried_pair>> places_;
  const uint64_t interval_;
  uint64_t step_ = 0;
  carried_bundle values_;           // by pair; null before the first run has ended well
  std::optional<checkpoint> last_;  // the last complete copy
  std::optional<uint64_t> copying_; // the step of the one on its way
  named_device_tensors initial_;    // step 0's values, by input, if they are to be copied
  uint64_t next_copy_ = 0;          // the first step at which one is due
};

} // namespace troupe
