#include "schedules/graph_draft.hpp"

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/topological_order.hpp"

#include <algorithm>
#include <tuple>

namespace troupe {

uint32_t graph_draft::add(const std::string& id, double work) {
  if (tasks_.size() == max_graph_tasks)
    fail(errc::invalid_argument, "there are more than {} tasks", max_graph_tasks);
  const auto number = static_cast<uint32_t>(tasks_.size());
  if (!numbers_.emplace(id, number).second)
    fail(errc::invalid_argument, "there are two tasks '{}'", printable(id));
  tasks_.push_back({.kind = id, .work = work, .name = id});
  return number;
}

std::optional<uint32_t> graph_draft::find(const std::string& id) const {
  const auto found = numbers_.find(id);
  return found == numbers_.end() ? std::nullopt : std::optional(found->second);
}

void graph_draft::join(uint32_t from, uint32_t to, double bytes) {
  if (from == to)
    fail(errc::invalid_argument, "the task '{}' waits for itself", printable(id(from)));
  if (joins_++ == max_graph_edges) // those that are there already count, too: they take as long
    fail(errc::invalid_argument, "there are more than {} edges", max_graph_edges);
  bytes_[uint64_t{from} << 32 | to] += bytes;
}

task_graph graph_draft::finish(std::string name) const {
  std::vector<std::pair<uint32_t, uint32_t>> ends;
  ends.reserve(bytes_.size());
  for (const auto& [key, bytes] : bytes_)
    ends.emplace_back(static_cast<uint32_t>(key >> 32), static_cast<uint32_t>(key));
  std::sort(ends.begin(), ends.end());
  const std::vector<uint32_t> order = topological_order(tasks_.size(), ends);
  if (order.size() < tasks_.size())
    fail(errc::invalid_argument, "tasks wait for each other: {}",
         cycle_text(find_cycle(tasks_.size(), ends), [&](uint32_t n) { return printable(id(n)); }));
  task_graph g{.name = std::move(name), .tasks = {}, .edges = {}};
  std::vector<uint32_t> place(order.size());
  for (const uint32_t n : order) {
    place[n] = static_cast<uint32_t>(g.tasks.size());
    g.tasks.push_back(tasks_[n]);
  }
  for (const auto& [from, to] : ends)
    g.edges.push_back({place[from], place[to], bytes_.at(uint64_t{from} << 32 | to)});
  std::sort(g.edges.begin(), g.edges.end(), [](const graph_edge& a, const graph_edge& b) {
    return std::tuple(a.to, a.from) < std::tuple(b.to, b.from);
  });
  return g;
}

} // namespace troupe
