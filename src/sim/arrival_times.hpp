// When requests come that do not wait for others' answers.
#pragma once

#include "troupe/simulation.hpp"

namespace troupe::sim {

/// Returns the times of requests in seconds, ascending, for processes other than `closed`. A Poisson process begins with a request at 0; its
/// gaps are drawn by inversion, so that equal seeds give equal times everywhere.
std::vector<double> arrival_times(const arrivals& how, size_t requests, uint64_t seed);

} // namespace troupe::sim
