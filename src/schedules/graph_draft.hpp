// A task graph as files give it: tasks by their ids, in any order.
#pragma once

#include "troupe/task_graph.hpp"

#include <optional>
#include <unordered_map>

namespace troupe {

/// How many operations a second of a task counts for where a file has seconds.
inline constexpr double operations_a_second = 1e9;

inline constexpr size_t max_graph_tasks = 1'000'000, max_graph_edges = 20'000'000;
/// What files may say of one task, in seconds, and of one file or edge, in bytes.
inline constexpr double max_task_seconds = 1e12, max_edge_bytes = 1e15;

/// See the top of this file. Errors are `errc::invalid_argument`; where in the file is for the reader to say.
class graph_draft {
public:
  /// Adds a task; throws if there is one of this id, or too many.
  uint32_t add(const std::string& id, double work);
  /// Returns a task's number here.
  std::optional<uint32_t> find(const std::string& id) const;
  double& work(uint32_t task) { return tasks_[task].work; }
  size_t size() const { return tasks_.size(); }
  const std::string& id(uint32_t task) const { return tasks_[task].name; }
  /// Adds an edge, or its bytes to the one that is there. Throws for too many, and for one from a task to itself.
  void join(uint32_t from, uint32_t to, double bytes);

  /// Returns the graph, its tasks in a topological order. Throws, naming a cycle, if there is none.
  task_graph finish(std::string name) const;

private:
  std::vector<graph_task> tasks_;
  std::unordered_map<std::string, uint32_t> numbers_;
  std::unordered_map<uint64_t, double> bytes_; // by from · 2^32 + to
  size_t joins_ = 0;
};

} // namespace troupe
