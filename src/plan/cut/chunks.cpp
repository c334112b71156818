#include "plan/cut/chunks.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace troupe {
namespace {

constexpr chunk_id none = UINT32_MAX;

class chunk_builder {
public:
  chunk_builder(const graph& program, const adjacency& edges, std::span<const device_index> placement,
                const segmentation& segments, std::span<const uint32_t> given)
      : program_(program), edges_(edges), placement_(placement), segments_(segments), given_(given),
        chunk_of_(program.nodes.size(), none), decides_shapes_(program.values.size(), false) {
    for (device_index d : placement)
      open_.resize(std::max<size_t>(open_.size(), d + 1), none);
    for (const data_symbol& symbol : segments.symbols)
      decides_shapes_[symbol.value] = true;
  }

  std::vector<chunk> build() {
    std::vector<std::vector<node_id>> by_segment(segments_.count);
    for (node_id n = 0; n < static_cast<node_id>(program_.nodes.size()); ++n)
      by_segment[segments_.of_node[n]].push_back(n);
    for (const auto& nodes : by_segment) {
      // A segment has an arena of its own: what an earlier one has uploaded or made is not in it.
      std::fill(open_.begin(), open_.end(), none);
      last_ = open_;
      uploaded_.clear();
      for (node_id n : nodes)
        add(n);
    }
    connect();
    return std::move(chunks_);
  }

private:
  static uint64_t pair_key(uint64_t a, uint64_t b) { return a << 32 | b; }

  /// Whether nodes of `n`'s device and segment find `v` on the device without an upload.
  bool is_local(node_id n, value_id v) const {
    const node_id from = edges_.producer[v];
    return from >= 0 && placement_[from] == placement_[n] && segments_.of_node[from] == segments_.of_node[n];
  }

  /// The chunk of another device that must complete before `n` reads `v`; `none` if the value comes from the caller, an
  /// earlier segment or the device itself.
  chunk_id awaited_chunk(node_id n, value_id v) const {
    const node_id from = edges_.producer[v];
    const bool remote =
        from >= 0 && segments_.of_node[from] == segments_.of_node[n] && placement_[from] != placement_[n];
    return remote ? chunk_of_[from] : none;
  }

  /// Whether `n` must wait for something that its device has not waited for yet.
  bool needs_new_wait(node_id n) const {
    for (value_id v : program_.nodes[n].inputs) {
      const chunk_id awaited = v == no_value ? none : awaited_chunk(n, v);
      if (awaited == none)
        continue;
      // A device's chunks end in their order, so a wait for its newest chunk is a wait for all before.
      const auto it = waited_.find(pair_key(placement_[n], chunks_[awaited].device));
      if (it == waited_.end() || it->second < awaited)
        return true;
    }
    return false;
  }

  bool starts_chunk(node_id n, chunk_id open) const {
    return given_.empty() ? needs_new_wait(n) : given_[n] != given_[chunks_[open].nodes.front()];
  }

  void add(node_id n) {
    const device_index device = placement_[n];
    if (open_[device] == none || starts_chunk(n, open_[device]))
      open(device, segments_.of_node[n]);
    const chunk_id id = open_[device];
    chunk_of_[n] = id;
    chunks_[id].nodes.push_back(n);
    add_uploads(n, id);
    // A value leaves when its whole chunk has ended, so the chunk ends where another device waits for one.
    if (add_downloads(n, id) && given_.empty())
      open_[device] = none;
  }

  void open(device_index device, uint32_t segment) {
    const auto id = static_cast<chunk_id>(chunks_.size());
    chunk& c = chunks_.emplace_back();
    c.device = device;
    c.segment = segment;
    if (last_[device] != none)
      c.predecessors.push_back(last_[device]);
    open_[device] = last_[device] = id;
  }

  void add_uploads(node_id n, chunk_id id) {
    for (value_id v : program_.nodes[n].inputs) {
      const bool from_host = v != no_value && !program_.values[v].constant && !is_local(n, v) &&
                             !(program_.values[v].known && edges_.producer[v] < 0);
      if (!from_host || !uploaded_.insert(pair_key(placement_[n], static_cast<uint32_t>(v))).second)
        continue;
      chunks_[id].uploads.push_back(v);
      const chunk_id awaited = awaited_chunk(n, v);
      if (awaited == none)
        continue;
      chunks_[id].predecessors.push_back(awaited);
      chunk_id& waited = waited_[pair_key(placement_[n], chunks_[awaited].device)];
      waited = std::max(waited, awaited);
    }
  }

  /// Returns whether another device needs a value of `n` in this segment.
  bool add_downloads(node_id n, chunk_id id) {
    bool leaves = false;
    for (value_id v : program_.nodes[n].outputs) {
      if (v == no_value)
        continue;
      bool needed = edges_.is_output[v] || decides_shapes_[v];
      for (node_id consumer : edges_.consumers[v]) {
        const bool later = segments_.of_node[consumer] != segments_.of_node[n];
        const bool elsewhere = !later && placement_[consumer] != placement_[n];
        needed = needed || later || elsewhere;
        leaves = leaves || elsewhere;
      }
      if (needed)
        chunks_[id].downloads.push_back(v);
      if (edges_.is_output[v])
        chunks_[id].produces_outputs = true;
    }
    return leaves;
  }

  void connect() {
    for (chunk_id id = 0; id < chunks_.size(); ++id) {
      auto& before = chunks_[id].predecessors;
      std::sort(before.begin(), before.end());
      before.erase(std::unique(before.begin(), before.end()), before.end());
      chunks_[id].initial_dependency_count = static_cast<uint32_t>(before.size());
      for (chunk_id b : before)
        chunks_[b].dependents.push_back(id);
    }
  }

  const graph& program_;
  const adjacency& edges_;
  std::span<const device_index> placement_;
  const segmentation& segments_;
  std::span<const uint32_t> given_; // chunk by node; empty if they are grown
  std::vector<chunk> chunks_;
  std::vector<chunk_id> chunk_of_;                // by node
  std::vector<bool> decides_shapes_;              // by value: the host must see its dims
  std::vector<chunk_id> open_, last_;             // by device, of the segment being built
  std::unordered_map<uint64_t, chunk_id> waited_; // newest chunk of the second device that the first has waited for
  std::unordered_set<uint64_t> uploaded_;         // device and value, in the segment being built
};

} // namespace

std::vector<chunk> build_chunks(const graph& program, const adjacency& edges, std::span<const device_index> placement,
                                const segmentation& segments, std::span<const uint32_t> given) {
  return chunk_builder(program, edges, placement, segments, given).build();
}

} // namespace troupe
