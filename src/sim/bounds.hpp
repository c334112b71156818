// How fast a model could run on some devices, however it were placed: what a schedule is compared with.
#pragma once

#include "plan/estimate/predict.hpp"

namespace troupe::sim {

struct schedule_bounds {
  double path_s = 0; // the longest path, each node on its fastest device
  double area_s = 0; // the best spread of all work over the devices; see `bounds`
};

/// Returns lower bounds for one run of a plan's nodes on its devices, moves, chunks and barriers free. Control flow
/// counts as nothing.
///
/// area_s: for any weights y of the devices, none negative, that sum to 1, no schedule takes less than Σ over nodes n
/// of the minimum over devices d of y_d · seconds(n, d): the dual of the linear program that spreads each node over the
/// devices (StarPU's area bound: E. Agullo, O. Beaumont, L. Eyraud-Dubois, S. Kumar, IPDPS 2016). The weights are found
/// by multiplicative updates, so the bound is true and nearly the best one. Zeros if there are more than
/// `max_bound_pairs` pairs of node and kind of device.
schedule_bounds bounds_of(const plan& p, std::span<const shape> dims);

inline constexpr size_t max_bound_pairs = 10'000'000;

} // namespace troupe::sim
