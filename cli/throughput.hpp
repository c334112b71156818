// Throughput of a session: several requests under way at a time.
#pragma once

#include "cli/command.hpp"

namespace troupe::cli {

struct throughput {
  int in_flight = 0; // 0: not measured
  double wall_ms = 0;
  int requests = 0;
  std::map<std::string, double> busy_ms; // by device
  stream_stats queue;
  strategy how = strategy::none;
  size_t stages = 1;        // of a pipeline
  double micro_batches = 1; // of a request

  double requests_per_s() const { return requests / wall_ms * 1e3; }
  /// The part of the time that devices were at work, on average over those that computed at all.
  double efficiency() const;
};

/// Measures `requests` requests with the same inputs, `in_flight` of them at a time. Throws what runs throw.
throughput measure_throughput(const session& model, const named_tensors& inputs, const model_options& options,
                              int requests, int in_flight, const std::stop_token& stop);

void print(const throughput& t);
nlohmann::json to_json(const throughput& t);

} // namespace troupe::cli
