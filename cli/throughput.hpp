// Throughput of a session: several requests under way at a time.
#pragma once

#include "cli/command.hpp"

namespace troupe::cli {

struct throughput {
  int in_flight = 0; // 0: not measured
  int requests = 0;
  run_stats cost; // of all of them together; `total_ms`: until the last one had ended
  stream_stats queue;
  strategy how = strategy::none;
  size_t stages = 1;        // of a pipeline
  double micro_batches = 1; // of a request
  double flops = 0;         // of a request

  double requests_per_s() const { return requests / cost.total_ms * 1e3; }
  double gflops_per_s() const { return requests_per_s() * flops / 1e9; }
};

/// Measures `requests` requests with the same inputs, `in_flight` of them at a time. Throws what runs throw.
throughput measure_throughput(const session& model, const named_tensors& inputs, const model_options& options,
                              int requests, int in_flight, const std::stop_token& stop);

void print(const throughput& t);
nlohmann::json to_json(const throughput& t);

} // namespace troupe::cli
