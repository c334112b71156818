// Runs a model, control flow included, from the calling thread: the session's own planning and bookkeeping without its
// actors, so that one execution takes milliseconds and a fault shows where it is made.
//
// The work of a run is limited: a file may ask for a loop without end, which a real run's deadline would stop.
#pragma once

#include "run/control_chunks.hpp"

namespace troupe::test {

/// Inputs that a fuzzing run gives a model.
struct inline_limits {
  int64_t memory_bytes = int64_t{256} << 20; // of each device
  double work = 2e7;                         // flops and bytes of a run
};

class inline_session {
public:
  /// Plans on `cpus` CPU devices. Throws the errors of `engine::load`.
  inline_session(graph source, session_options options, size_t cpus = 1, const inline_limits& limits = {});
  ~inline_session();

  const std::vector<value_info>& inputs() const { return model_->inputs; }

  /// Returns the outputs in the model's order. Throws the errors of `session::run`; `errc::timeout` if the work is
  /// beyond the limit.
  std::vector<tensor> run(named_tensors inputs);

private:
  std::vector<tensor> execute(execution& e);
  void run_segment(execution& e, const bound_plan_ptr& bound);
  chunk_result run_chunk(execution& e, chunk_work work);
  chunk_result run_control(execution& e, chunk_work work);
  /// Bytes that the executions in progress hold, by device.
  std::vector<int64_t> taken() const;
  void count_work(const bound_plan& bound, const chunk& c);
  void count_work(double work);

  std::vector<std::unique_ptr<device>> devices_;
  model_ptr model_;
  std::unique_ptr<session_plans> plans_;
  std::vector<const execution*> running_; // outermost first
  double work_left_ = 0;
  const inline_limits limits_;
};

/// Makes inputs of a model up: small numbers and, among them, numbers on which arithmetic fails; the same for equal
/// seeds. Throws `errc::out_of_memory` if one would be too large.
named_tensors make_up_inputs(std::span<const value_info> inputs, uint32_t seed);

} // namespace troupe::test
