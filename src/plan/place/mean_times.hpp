// Times averaged over devices, and the ranks that list scheduling orders tasks by (Topcuoglu, Hariri, Wu 2002, section
// 4).
#pragma once

#include "plan/place/scheduling_problem.hpp"

namespace troupe {

/// Returns the mean seconds of each task over its candidates.
std::vector<double> mean_seconds(const scheduling_problem& problem);

/// Returns the mean seconds of a value's move, as ranks count it.
double ranked_move(const scheduling_problem& problem, uint32_t v);

/// Returns the seconds from each task's start to the end of the graph, by mean times; without those of moves if
/// `moves` is false.
std::vector<double> upward_ranks(const scheduling_problem& problem, std::span<const double> mean, bool moves = true);
/// Returns the seconds from the start of the graph to each task's start, by mean times.
std::vector<double> downward_ranks(const scheduling_problem& problem, std::span<const double> mean);

/// Returns all tasks, those of higher rank first; equal ranks keep the graph's order, which is topological.
std::vector<task_id> by_rank(std::span<const double> rank);

} // namespace troupe
