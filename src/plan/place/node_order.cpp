#include "plan/place/node_order.hpp"

#include "cost/cost_model.hpp"
#include "graph/data_symbols.hpp"
#include "plan/estimate/predict.hpp"

#include <algorithm>
#include <queue>

namespace troupe {
namespace {

/// Ranks that differ by less than this part of the longest way count as equal: predictions are no better.
constexpr double rank_steps = 256;
/// Nodes that only make answers go early if copying these takes this many times as long.
constexpr double outlet_gain = 4;

class node_sorter {
public:
  node_sorter(const graph& g, std::span<const device_index> placement, std::span<const device_info> devices,
              std::span<const shape> dims)
      : g_(g), placement_(placement), devices_(devices), dims_(dims), edges_(adjacency_of(g)),
        shape_readers_(find_shape_readers(g)) {}

  std::vector<node_id> sort() {
    const std::vector<double> rank = upward_ranks();
    const double step = *std::max_element(rank.begin(), rank.end()) / rank_steps;
    const std::vector<bool> outlet = find_outlets();
    std::vector<uint32_t> missing = dependency_counts();
    std::priority_queue<entry> ready;
    std::vector<std::vector<node_id>> held(devices_.size()); // outlets that could run, by device
    const auto push = [&](node_id n) {
      if (outlet[n])
        held[placement_[n]].push_back(n);
      else
        ready.push({step > 0 ? static_cast<int64_t>(rank[n] / step) : 0, freed_bytes(n), n});
    };
    std::vector<node_id> order;
    order.reserve(missing.size());
    const auto take = [&](node_id n) {
      order.push_back(n);
      for_each_reader(n, [&](node_id reader) {
        if (--missing[reader] == 0)
          push(reader);
      });
    };
    const auto release = [&](std::vector<node_id>& outlets) {
      for (size_t i = 0; i < outlets.size(); ++i) // one that is taken may add others
        take(outlets[i]);
      outlets.clear();
    };
    for (node_id n = 0; n < static_cast<node_id>(missing.size()); ++n)
      if (missing[n] == 0)
        push(n);
    while (!ready.empty()) {
      const node_id n = ready.top().node;
      ready.pop();
      take(n);
      if (is_read_elsewhere(n)) // its device ends a chunk
        release(held[placement_[n]]);
    }
    for (std::vector<node_id>& outlets : held)
      release(outlets);
    return order;
  }

private:
  struct entry {
    int64_t urgency;
    double freed;
    node_id node;

    /// Whether `other` goes first.
    bool operator<(const entry& other) const {
      return std::tie(urgency, freed, other.node) < std::tie(other.urgency, other.freed, node);
    }
  };

  /// Returns, by node, those whose dims depend on its data: a symbol belongs to the first node that mentions it, so
  /// that node has to stay the first. Empty if no dim depends on data.
  static std::vector<std::vector<node_id>> find_shape_readers(const graph& g) {
    const data_symbols symbols(g);
    std::vector<std::vector<node_id>> readers(symbols.size() > 0 ? g.nodes.size() : 0);
    for (node_id n = 0; n < static_cast<node_id>(readers.size()); ++n)
      for (const auto* ids : {&g.nodes[n].inputs, &g.nodes[n].outputs})
        for (value_id v : *ids)
          if (v != no_value)
            for (data_symbols::id s : symbols.of_value(v))
              if (const node_id definer = symbols.definer(s); definer >= 0 && definer != n)
                readers[definer].push_back(n);
    return readers;
  }

  /// Calls `f` for each value or symbol of a node and each node that reads it.
  template <class F>
  void for_each_reader(node_id n, F&& f) const {
    for (value_id v : g_.nodes[n].outputs)
      if (v != no_value)
        for (node_id reader : edges_.consumers[v])
          f(reader);
    if (!shape_readers_.empty())
      for (node_id reader : shape_readers_[n])
        f(reader);
  }

  bool is_read_elsewhere(node_id n) const {
    return std::ranges::any_of(g_.nodes[n].outputs, [&](value_id v) {
      return v != no_value && std::ranges::any_of(edges_.consumers[v],
                                                  [&](node_id reader) { return placement_[reader] != placement_[n]; });
    });
  }

  /// Finds, by node, those whose results only the caller reads, or others of them on the same device: little work,
  /// theirs and that of their readers, for much that is copied beside work.
  std::vector<bool> find_outlets() const {
    std::vector<bool> outlet(g_.nodes.size(), false);
    std::vector<double> work_s(g_.nodes.size(), 0), answer_bytes(g_.nodes.size(), 0); // readers included
    for (auto n = static_cast<node_id>(outlet.size()); n-- > 0;) {
      const device_info& device = devices_[placement_[n]];
      if (!device.copies_beside_work || !shape_readers_.empty())
        continue;
      work_s[n] = node_seconds(n);
      bool only = true;
      for (value_id v : g_.nodes[n].outputs) {
        if (v == no_value)
          continue;
        answer_bytes[n] += edges_.is_output[v] ? value_bytes(v) : 0;
        for (node_id reader : edges_.consumers[v]) {
          only = only && outlet[reader] && placement_[reader] == placement_[n];
          work_s[n] += work_s[reader];
          answer_bytes[n] += answer_bytes[reader];
        }
      }
      const double copy_s = answer_bytes[n] / device.profile.down.bytes_per_s;
      outlet[n] = only && answer_bytes[n] >= copies_beside_bytes && copy_s > outlet_gain * work_s[n];
    }
    return outlet;
  }

  std::vector<uint32_t> dependency_counts() const {
    std::vector<uint32_t> counts(g_.nodes.size(), 0);
    for (node_id n = 0; n < static_cast<node_id>(counts.size()); ++n)
      for_each_reader(n, [&](node_id reader) { ++counts[reader]; });
    return counts;
  }

  /// Seconds from each node's start to the end of the model, if nothing but data is waited for.
  std::vector<double> upward_ranks() const {
    std::vector<double> rank(g_.nodes.size(), 0);
    for (auto n = static_cast<node_id>(rank.size()); n-- > 0;) {
      double behind = 0;
      for (value_id v : g_.nodes[n].outputs)
        if (v != no_value)
          for (node_id reader : edges_.consumers[v])
            behind = std::max(behind, rank[reader] + move_seconds_to(v, placement_[n], placement_[reader]));
      rank[n] = node_seconds(n) + behind;
    }
    return rank;
  }

  double node_seconds(node_id n) const {
    const auto dims_of = [&](value_id v) -> const shape& { return dims_[v]; };
    return troupe::node_seconds(g_, g_.nodes[n], dims_of, devices_[placement_[n]].profile);
  }

  double move_seconds_to(value_id v, device_index from, device_index to) const {
    if (from == to)
      return 0;
    return devices_[from].profile.chunk_s + move_seconds(value_bytes(v), devices_[from], devices_[to]);
  }

  double value_bytes(value_id v) const { return byte_count(g_.values[v].type, dims_[v]); }

  /// Bytes of inputs that only this node reads, less those of its outputs.
  double freed_bytes(node_id n) const {
    double freed = 0;
    for (value_id v : g_.nodes[n].inputs)
      if (v != no_value && edges_.producer[v] >= 0 && edges_.consumers[v].size() == 1)
        freed += value_bytes(v);
    for (value_id v : g_.nodes[n].outputs)
      if (v != no_value)
        freed -= value_bytes(v);
    return freed;
  }

  const graph& g_;
  std::span<const device_index> placement_;
  std::span<const device_info> devices_;
  std::span<const shape> dims_;
  const adjacency edges_;
  const std::vector<std::vector<node_id>> shape_readers_; // by node
};

} // namespace

void order_nodes(graph& g, std::vector<device_index>& placement, std::span<const device_info> devices,
                 const bindings& expected) {
  const auto elsewhere = [&](device_index d) { return d != placement[0]; };
  if (std::none_of(placement.begin(), placement.end(), elsewhere))
    return;
  const std::vector<shape> dims = expected_dims(g, expected);
  const std::vector<node_id> order = node_sorter(g, placement, devices, dims).sort();
  std::vector<node> nodes;
  std::vector<device_index> placed;
  nodes.reserve(order.size());
  placed.reserve(order.size());
  for (node_id n : order) {
    nodes.push_back(std::move(g.nodes[n]));
    placed.push_back(placement[n]);
  }
  g.nodes = std::move(nodes);
  placement = std::move(placed);
}

} // namespace troupe
