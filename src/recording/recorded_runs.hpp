// The runs of a recorded session, made again: what they are given, and which numbers they have in this process.
#pragma once

#include "recording/record_reader.hpp"
#include "run/model.hpp"

namespace troupe::recording {

class recorded_runs {
public:
  /// Those of a session of this model.
  explicit recorded_runs(model_ptr m) : model_(std::move(m)) {}

  /// Makes the run that a `run_started` record tells of. Throws `errc::invalid_input`, `errc::out_of_memory`.
  run_request_ptr make(fields& f);
  /// Reads the inputs that are the rest of a record.
  static named_tensors read_inputs(fields& f);
  /// Keeps what a run hands on, for the runs that are given that. To be told each answer.
  void answered(const run_answer& answer);

  /// Returns the number in this process of what a record names next; 0 if it has none.
  uint64_t in_process(fields& f) const;
  /// Return a record of the recorded session, or of this one, with numbers that are the same for both.
  record numbered_there(record r) { return there_.renumbered(std::move(r)); }
  record numbered_here(record r) { return here_.renumbered(std::move(r)); }

private:
  carried_values read_carried(fields& f);

  const model_ptr model_;
  numbering there_, here_;                   // of the recorded session, of this one
  std::map<uint64_t, run_request_ptr> runs_; // not answered, by ticket
  std::map<uint64_t, carried_bundle> made_;  // by run, as numbered
  std::vector<std::shared_ptr<const std::vector<carried_pair>>> pairs_;
};

} // namespace troupe::recording
