// The steps of a bound session since its last checkpoint, as they can be taken again: what each was given, and some
// elements of what it answered, by which a repetition is compared. Plain bookkeeping. Not thread-safe.
#pragma once

#include "run/request.hpp"

#include <algorithm>
#include <deque>

namespace troupe {

/// Some elements of an output, of its beginning and of its end.
struct output_sample {
  std::string name;
  shape dims;
  tensor elements;
};

/// One step that can be taken again.
struct kept_step {
  named_tensors inputs; // copies: callers may change theirs after the step
  named_device_tensors device_inputs;
  std::vector<output_sample> answers;
  bool is_left_out = false; // it is given too much to be kept

  int64_t bytes() const;
};

/// Returns a tensor with bytes of its own; strings, sequences and optionals are shared.
tensor copied(const tensor& t);

/// Returns the first and the last 32 elements of each output of numbers of at least a byte.
std::vector<output_sample> samples_of(const named_tensors& outputs);

/// Returns how an output differs from what was answered before, for people; "" if it does not: integers and booleans
/// are equal, floats within 0.001 of the sample's largest magnitude, of 16 bits and less, or if `half` says that such
/// were computed with, within 0.01.
std::string difference_from(std::span<const output_sample> before, const named_tensors& outputs, bool half);

class step_log {
public:
  /// A log that has grown beyond `limit` bytes is full, and forgets all steps beyond twice that. 0: no step is kept.
  explicit step_log(int64_t limit) : limit_(limit) {}

  bool keeps_steps() const { return limit_ > 0; }
  /// Returns how many bytes of initial values are copied as they are given, and of a step's inputs: more would cost a
  /// step too much time.
  int64_t most_initial_bytes() const { return std::min(limit_, int64_t{4} << 20); }
  int64_t most_step_bytes() const { return std::min(limit_, int64_t{1} << 20); }
  /// Begins anew: the next step is `next`.
  void begin(uint64_t next);
  /// The next step has ended well.
  void add(kept_step step);
  /// There is a checkpoint of this step.
  void forget_through(uint64_t step);
  /// Returns whether all steps from `first` on are kept, up to the last that was added.
  bool reaches(uint64_t first) const { return keeps_steps() && first >= first_; }
  const kept_step& at(uint64_t step) const { return steps_.at(step - first_); }
  bool is_full() const { return bytes_ > limit_; }

private:
  void forget_first();

  const int64_t limit_;
  uint64_t first_ = 1; // the number of steps_[0]
  std::deque<kept_step> steps_;
  int64_t bytes_ = 0;
};

} // namespace troupe
