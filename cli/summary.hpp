// Statistics for people and as JSON: of a tensor's elements, of what a session had in its caches.
#pragma once

#include "actors/engine_access.hpp"

#include <nlohmann/json.hpp>

#include <string>

namespace troupe::cli {

/// Of a numeric tensor; min, max, mean and deviation are over its finite elements, 0 if there are none.
struct summary {
  double smallest = 0, largest = 0, mean = 0, deviation = 0;
  int64_t nan = 0, infinite = 0, zero = 0;
  std::vector<double> first; // elements, in row-major order
};

/// Returns whether `summarise` takes the tensor: numbers, at least one.
bool can_summarise(const tensor& t);

/// Looks at all elements and keeps the first `keep`.
summary summarise(const tensor& t, size_t keep = 4);

/// Returns e.g. "min -1  max 2  mean 0.5  [0, 1, 2, …]"; empty for what cannot be summarised.
std::string summary_text(const tensor& t);

/// Returns type, dims and, if there are any, the statistics. Numbers that JSON does not have are null.
nlohmann::json summary_json(const tensor& t, size_t keep = 4);

/// Returns e.g. "plans 9 of 10, bound plans 8 of 10 (2 evicted), layouts 0 of 2": what was there of what was looked
/// for.
std::string cache_text(const session_stats& stats);

/// Returns hits, misses and evictions of each cache.
nlohmann::json cache_json(const session_stats& stats);

} // namespace troupe::cli
