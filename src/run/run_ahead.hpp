// The run of a bound session that is likely to follow the one in flight, made while devices are at work: its execution,
// and the work of its first chunks, but for what it is given. So a decoder's next step takes its inputs, and is sent.
//
// It holds no value: those that the session hands on are taken when it begins. Which they will be, and that they are as
// planned, is known before (`expect`), so that nothing needs to be looked at again then.
//
// Not thread-safe.
#pragma once

#include "run/chunk_batches.hpp"
#include "run/execution.hpp"

namespace troupe {

class run_ahead {
public:
  /// Makes the run ready that may follow the execution `after`. `next` is bound, `pairs` are those of the bound
  /// session. Returns null if more than the inputs' dims decides what it executes, or its first chunks are of control
  /// flow.
  static std::unique_ptr<run_ahead> make(prepared_run next, std::shared_ptr<const std::vector<carried_pair>> pairs,
                                         completion_mode mode, execution_id after);

  execution_id after() const { return after_; }
  const prepared_run& prepared() const { return begun_.run->prepared(); }

  /// Says what the session hands on. Returns whether the run's devices can take it as its plan wants it.
  bool expect(const carried_bundle& given);

  /// Returns whether it is the run that is asked for: carries what was expected, and its other inputs have the types
  /// and dims that it was made for.
  bool is(const run_request& request) const;

  /// What begins: an execution that has taken its first chunks.
  struct begun {
    std::unique_ptr<execution> run;
    std::vector<device_batch> sent;
  };
  /// Makes it the run that is asked for, on an arena slot. Called once.
  begun begin(const run_request_ptr& request, uint32_t slot);

private:
  run_ahead(begun made, std::shared_ptr<const std::vector<carried_pair>> pairs, execution_id after);

  const std::shared_ptr<const std::vector<carried_pair>> pairs_;
  const execution_id after_;
  std::weak_ptr<const std::vector<carried_value>> expected_;
  begun begun_;
};

} // namespace troupe
