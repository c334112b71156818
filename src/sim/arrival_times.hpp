// When requests come that do not wait for others' answers.
#pragma once

#include "troupe/simulation.hpp"

namespace troupe::sim {

/// Returns the times of requests in seconds, ascending, for processes other than `closed`. A Poisson process begins
/// with a request at 0; its gaps are drawn by inversion, so that equal seeds give equal times everywhere.
std::vector<double> arrival_times(const arrivals& how, size_t requests, uint64_t seed);

/// The latest time that a request may come at, in seconds, and how many times a list may have.
inline constexpr double latest_arrival_s = 1e9;
inline constexpr size_t most_arrivals = 10'000'000;

/// The most rows that a request may have.
inline constexpr int64_t most_request_rows = 1'000'000;

} // namespace troupe::sim
