// What a stream of requests is expected to take over replicas: their pieces' chunks played through together, in the
// order in which they become ready, on devices that may share processors (plan/estimate/predict.hpp). Pure.
#pragma once

#include "plan/estimate/predict.hpp"
#include "strategy/stream.hpp"

namespace troupe {

/// What a request costs that goes through a session's queue, beside its pieces.
inline constexpr double queue_seconds = 3e-5;
/// How fast parts of an answer are copied to one tensor, in bytes a second.
inline constexpr double gather_bytes_per_s = 8e9;

/// A replica whose pieces are played.
struct forecast_replica {
  std::shared_ptr<const plan> compiled;
  size_t depth = 2; // pieces in flight
};

/// Rows that a replica runs at once. Those of a replica run in the order in which they are listed.
struct forecast_piece {
  size_t request = 0;
  size_t replica = 0;
  int64_t rows = 0;
};

class stream_forecast {
public:
  /// `symbols`: dims of a request; `rows`: the one of them that counts its rows, empty if requests run whole.
  stream_forecast(std::vector<forecast_replica> replicas, bindings symbols, std::string rows);

  /// Returns the seconds until each request has its answer if all are there from the beginning. By request; `requests`
  /// of them.
  std::vector<double> play(std::span<const forecast_piece> pieces, size_t requests);

  /// Returns what a replica's pieces take, one at a time.
  replica_figures figures(size_t replica);

private:
  /// Costs of one replica's chunks, on devices numbered over all replicas.
  const std::vector<chunk_cost>& costs(size_t replica, int64_t rows);

  const std::vector<forecast_replica> replicas_;
  const bindings symbols_;
  const std::string rows_;
  std::vector<device_info> devices_;                 // of all replicas, each once; control nodes' after them
  std::vector<std::vector<device_index>> device_of_; // by replica, by device of its plan
  std::map<std::pair<size_t, int64_t>, std::vector<chunk_cost>> costs_; // by replica and rows
};

} // namespace troupe
