// Compares a saved plan with the model and the devices, and places the nodes as it says.
#include "base/topological_order.hpp"
#include "graph/bodies.hpp"
#include "plan/estimate/gpu_support.hpp"
#include "plan/saved_plan.hpp"

#include <algorithm>
#include <unordered_map>

namespace troupe {
namespace {

constexpr uint32_t nowhere = UINT32_MAX;
constexpr device_index unplaced = UINT32_MAX;

/// A chunk needs a value of another one.
struct chunk_edge {
  uint32_t from = 0, to = 0;
  node_id maker = 0, reader = 0;
};

class saved_placer {
public:
  saved_placer(const graph& g, bool same_model, std::span<const device_info> devices, const saved_plan& saved)
      : g_(g), devices_(devices), saved_(saved), same_model_(same_model), chunk_of_(g.nodes.size(), nowhere) {}

  /// Returns the chunk of every node in the file's numbering.
  const std::vector<uint32_t>& assign() {
    find_nodes();
    check_complete();
    find_devices();
    check_devices();
    return chunk_of_;
  }

  /// Returns the file's chunks in an order in which they can run.
  std::vector<uint32_t> order() const {
    const std::vector<chunk_edge> edges = find_edges();
    std::vector<std::pair<uint32_t, uint32_t>> ends;
    ends.reserve(edges.size());
    for (const chunk_edge& e : edges)
      ends.emplace_back(e.from, e.to);
    std::vector<uint32_t> ordered = topological_order(saved_.chunks.size(), ends);
    if (ordered.size() != saved_.chunks.size())
      report_cycle(edges, find_cycle(saved_.chunks.size(), ends));
    return ordered;
  }

  device_index device_of(uint32_t chunk) const { return device_of_[chunk]; }

private:
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail(errc::invalid_plan, "{}: {}{}", saved_.source, fmt::format(format, std::forward<Args>(args)...),
         same_model_ ? ""
                     : "; the plan was saved for another model, or with other options (fusion, precision, outputs)");
  }

  /// Control flow has no device: each such node is a chunk of its own.
  void find_devices() {
    for (size_t c = 0; c < saved_.chunks.size(); ++c) {
      const std::string& name = saved_.chunks[c].device;
      const auto found =
          std::find_if(devices_.begin(), devices_.end(), [&](const device_info& d) { return d.name == name; });
      device_of_.push_back(found == devices_.end() ? unplaced : static_cast<device_index>(found - devices_.begin()));
    }
    std::vector<size_t> size(saved_.chunks.size(), 0);
    for (uint32_t c : chunk_of_)
      ++size[c];
    for (size_t n = 0; n < g_.nodes.size(); ++n) {
      const uint32_t c = chunk_of_[n];
      if (has_body(g_.nodes[n]) ? size[c] == 1 : device_of_[c] != unplaced)
        continue;
      if (has_body(g_.nodes[n]))
        refuse("chunk {} holds {} and other nodes; control flow is a chunk of its own", c, describe(g_.nodes[n]));
      refuse("chunk {} is on the device '{}', which is not open; open are: {}", c, saved_.chunks[c].device,
             device_names());
    }
  }

  std::string device_names() const {
    std::string names;
    for (const device_info& d : devices_)
      names += (names.empty() ? "" : ", ") + d.name;
    return names;
  }

  void find_nodes() {
    std::unordered_map<std::string_view, node_id> by_name;
    for (size_t n = 0; n < g_.nodes.size(); ++n)
      by_name.emplace(g_.nodes[n].name, static_cast<node_id>(n));
    for (uint32_t c = 0; c < saved_.chunks.size(); ++c)
      for (const saved_node& entry : saved_.chunks[c].nodes) {
        if (entry.inserted)
          continue;
        const auto found = by_name.find(entry.name);
        if (found == by_name.end())
          refuse("chunk {} names the node '{}', which the model does not have", c, entry.name);
        put(found->second, entry, c);
      }
  }

  void put(node_id n, const saved_node& entry, uint32_t chunk) {
    if (g_.nodes[n].op_type != entry.op_type)
      refuse("the node '{}' is a {} in the plan, but a {} in the model", entry.name, entry.op_type,
             g_.nodes[n].op_type);
    if (chunk_of_[n] != nowhere)
      refuse("the node '{}' is listed twice, in chunk {} and in chunk {}", entry.name, chunk_of_[n], chunk);
    chunk_of_[n] = chunk;
  }

  void check_complete() const {
    const auto left_out = std::count(chunk_of_.begin(), chunk_of_.end(), nowhere);
    if (left_out > 0) {
      const auto first = std::find(chunk_of_.begin(), chunk_of_.end(), nowhere) - chunk_of_.begin();
      refuse("no chunk holds {}{}", describe(g_.nodes[first]),
             left_out > 1 ? fmt::format(" and {} nodes more", left_out - 1) : "");
    }
    if (!same_model_)
      refuse("nodes of these names have other attributes, operands, types or shapes here");
  }

  void check_devices() const {
    std::optional<gpu_support> support;
    for (size_t n = 0; n < g_.nodes.size(); ++n) {
      if (has_body(g_.nodes[n]))
        continue;
      const device_info& device = devices_[device_of_[chunk_of_[n]]];
      if (!device.gpu)
        continue;
      if (!support)
        support.emplace(g_);
      const gpu_obstacle obstacle = support->obstacle(static_cast<node_id>(n), *device.gpu);
      if (obstacle != gpu_obstacle::none)
        refuse("chunk {} puts {} on '{}', which cannot run it: {}", chunk_of_[n], describe(g_.nodes[n]), device.name,
               describe(obstacle, g_.nodes[n]));
    }
  }

  /// Returns the edges between chunks, each pair once.
  std::vector<chunk_edge> find_edges() const {
    const std::vector<node_id> producer = adjacency_of(g_).producer;
    std::vector<chunk_edge> edges;
    for (node_id n = 0; n < static_cast<node_id>(g_.nodes.size()); ++n)
      for (value_id v : g_.nodes[n].inputs) {
        const node_id maker = v == no_value ? -1 : producer[v];
        if (maker >= 0 && chunk_of_[maker] != chunk_of_[n])
          edges.push_back({chunk_of_[maker], chunk_of_[n], maker, n});
      }
    const auto pair_of = [](const chunk_edge& e) { return std::pair(e.from, e.to); };
    std::stable_sort(edges.begin(), edges.end(),
                     [&](const chunk_edge& a, const chunk_edge& b) { return pair_of(a) < pair_of(b); });
    edges.erase(
        std::unique(edges.begin(), edges.end(), [&](const auto& a, const auto& b) { return pair_of(a) == pair_of(b); }),
        edges.end());
    return edges;
  }

  [[noreturn]] void report_cycle(const std::vector<chunk_edge>& edges, std::span<const uint32_t> cycle) const {
    std::string text;
    for (size_t i = 0; i < cycle.size(); ++i) {
      const uint32_t from = cycle[i], to = cycle[(i + 1) % cycle.size()];
      const chunk_edge& e = *std::find_if(edges.begin(), edges.end(),
                                          [&](const auto& each) { return each.from == from && each.to == to; });
      text += fmt::format("{}'{}' in chunk {} waits for '{}' in chunk {}", text.empty() ? "" : ", ",
                          g_.nodes[e.reader].name, e.to, g_.nodes[e.maker].name, e.from);
    }
    refuse("chunks wait for each other: {}", text);
  }

  const graph& g_;
  std::span<const device_info> devices_;
  const saved_plan& saved_;
  const bool same_model_;
  std::vector<uint32_t> chunk_of_; // by node
  std::vector<device_index> device_of_;
};

} // namespace

std::vector<device_index> place_as_saved(graph& g, const hash128& structure, std::span<const device_info> devices,
                                         const saved_plan& saved, chunk_assignment& chunks) {
  saved_placer placer(g, to_hex(structure) == saved.structure, devices, saved);
  const std::vector<uint32_t> chunk_of = placer.assign(), order = placer.order();
  std::vector<uint32_t> rank(order.size());
  for (uint32_t i = 0; i < order.size(); ++i)
    rank[order[i]] = i;
  std::vector<node_id> sequence(g.nodes.size());
  for (size_t n = 0; n < sequence.size(); ++n)
    sequence[n] = static_cast<node_id>(n);
  std::stable_sort(sequence.begin(), sequence.end(),
                   [&](node_id a, node_id b) { return rank[chunk_of[a]] < rank[chunk_of[b]]; });
  std::vector<node> nodes;
  std::vector<device_index> placement;
  chunks.clear();
  for (node_id n : sequence) {
    nodes.push_back(std::move(g.nodes[n]));
    placement.push_back(placer.device_of(chunk_of[n]));
    chunks.push_back(chunk_of[n]);
  }
  g.nodes = std::move(nodes);
  return placement;
}

chunk_assignment include_inserted(const graph& g, const std::vector<bool>& inserted,
                                  std::span<const device_index> placement, std::span<const device_info> devices,
                                  const saved_plan& saved, const chunk_assignment& chunks) {
  std::unordered_map<std::string_view, uint32_t> listed;
  for (uint32_t c = 0; c < saved.chunks.size(); ++c)
    for (const saved_node& entry : saved.chunks[c].nodes)
      if (entry.inserted)
        listed.emplace(entry.name, c);
  chunk_assignment all(g.nodes.size(), nowhere);
  for (size_t n = 0, own = 0; n < all.size(); ++n) {
    if (!inserted[n])
      all[n] = chunks[own++];
    else if (const auto found = listed.find(g.nodes[n].name);
             found != listed.end() && saved.chunks[found->second].device == devices[placement[n]].name)
      all[n] = found->second;
    else if (n > 0 && placement[n - 1] == placement[n])
      all[n] = all[n - 1];
  }
  // A node before all others of its device serves the ones that follow.
  std::vector<uint32_t> next(devices.size(), nowhere);
  for (size_t n = all.size(); n-- > 0;) {
    if (all[n] == nowhere)
      all[n] = next[placement[n]];
    if (all[n] == nowhere)
      fail(errc::invalid_plan, "{}: no chunk holds {}, which the plan needs on '{}'", saved.source,
           describe(g.nodes[n]), devices[placement[n]].name);
    next[placement[n]] = all[n];
  }
  return all;
}

} // namespace troupe
