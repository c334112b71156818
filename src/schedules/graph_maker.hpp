// What the generators of task graphs share.
#pragma once

#include "schedules/task_graph.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

/// The most that a size of a graph may be.
inline constexpr uint32_t most_width = 1u << 16;

inline void check_size(const char* what, uint32_t is, uint32_t most) {
  if (is < 1 || is > most)
    fail(errc::invalid_argument, "{} is {}; it may be 1 to {}", what, is, most);
}

/// Adds tasks that read what tasks before them made.
class graph_maker {
public:
  explicit graph_maker(std::string name) { graph_.name = std::move(name); }

  /// What a task reads: of whom, and how much.
  struct read {
    task_id from = policy_none; // none
    double bytes = 0;
  };

  task_id add(std::string kind, double work, std::vector<read> reads = {}) {
    const auto n = static_cast<task_id>(graph_.tasks.size());
    graph_.tasks.push_back({std::move(kind), work});
    std::sort(reads.begin(), reads.end(), [](const read& a, const read& b) { return a.from < b.from; });
    for (const read& r : reads)
      if (r.from != policy_none)
        graph_.edges.push_back({r.from, n, r.bytes});
    return n;
  }

  task_graph take() { return std::move(graph_); }

private:
  task_graph graph_;
};

} // namespace troupe
