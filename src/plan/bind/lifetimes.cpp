#include "plan/bind/lifetimes.hpp"

#include "ops/op.hpp"
#include "plan/cut/cache_appends.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// Finds the lifetimes of one device after the other; its tables are by value and reused.
class lifetime_finder {
public:
  explicit lifetime_finder(const plan& p)
      : p_(p), index_(p.program->values.size(), -1), reader_(index_.size(), no_reader), leaves_(index_.size(), false),
        appends_(find_cache_appends(p)) {}

  /// `chunks` are those of one device in one segment, ascending.
  device_lifetimes find(std::span<const chunk_id> chunks) {
    found_ = {};
    if (chunks.empty())
      return {};
    host_memory_ = p_.devices[p_.chunks[chunks[0]].device].host_memory;
    mark_leaving(chunks, true);
    for (size_t i = 0; i < chunks.size(); ++i)
      walk(chunks, i);
    const uint32_t end = found_.positions;
    found_.positions = 0;
    for (chunk_id c : chunks)
      find_candidates(p_.chunks[c]);
    expects(end == found_.positions, "lifetimes: the two passes differ");
    mark_leaving(chunks, false);
    for (const lifetime& l : found_.values)
      index_[l.value] = -1;
    return std::move(found_);
  }

private:
  /// Roots of downloads keep bytes of their own on host-memory devices, since the bytes leave.
  void mark_leaving(std::span<const chunk_id> chunks, bool leaving) {
    for (chunk_id c : chunks)
      for (value_id v : p_.chunks[c].downloads)
        leaves_[root_on(p_, p_.chunks[c], v)] = leaving && host_memory_;
  }

  bool belongs_in_arena(const chunk& c, value_id v) const {
    const value& info = p_.program->values[v];
    return p_.storage[v] == v && !leaves_[v] && !holds_objects(info.type) && p_.segment_of_value[v] <= c.segment;
  }

  void define(value_id v, uint32_t position) {
    index_[v] = static_cast<int64_t>(found_.values.size());
    found_.values.push_back({v, position, position});
  }

  /// A tensor that is made of parts is in use from the first that is written.
  void write(const chunk& c, value_id root, uint32_t position) {
    if (index_[root] >= 0)
      use(c, root, position);
    else if (belongs_in_arena(c, root))
      define(root, position);
  }

  void use(const chunk& c, value_id v, uint32_t position) {
    if (const int64_t at = index_[root_on(p_, c, v)]; at >= 0)
      found_.values[at].last = std::max(found_.values[at].last, position);
  }

  void define_uploads(const chunk& c) {
    for (value_id v : c.uploads)
      if (!host_memory_ && !holds_objects(p_.program->values[v].type))
        define(v, found_.positions);
  }

  /// A chunk takes a position for its uploads, one for each step, and one for its downloads. If copies go beside work,
  /// its uploads may come while the chunk before computes, and its downloads go while the chunk after does.
  void walk(std::span<const chunk_id> chunks, size_t i) {
    const chunk& c = p_.chunks[chunks[i]];
    const bool beside = p_.devices[c.device].copies_beside_work;
    uint32_t& position = found_.positions;
    if (i == 0 || !beside)
      define_uploads(c);
    if (beside && i + 1 < chunks.size())
      define_uploads(p_.chunks[chunks[i + 1]]);
    ++position;
    walk_steps(c);
    for (value_id v : c.downloads)
      use(c, v, position);
    for (const cache_append& a : appends_) // new rows of caches that grow in place are written last
      if (a.chunk == chunks[i])
        use(c, a.fresh, position);
    if (beside && i > 0)
      for (value_id v : p_.chunks[chunks[i - 1]].downloads)
        use(c, v, position);
    ++position;
  }

  void walk_steps(const chunk& c) {
    for_each_step(c, [&](std::span<const node_id> nodes) {
      for (node_id n : nodes) {
        for (value_id v : p_.program->nodes[n].outputs)
          if (v != no_value)
            write(c, is_part(p_, v) ? p_.storage[v] : v, found_.positions);
        for (value_id v : p_.program->nodes[n].inputs)
          if (v != no_value)
            use(c, v, found_.positions);
      }
      ++found_.positions;
    });
  }

  void find_candidates(const chunk& c) {
    uint32_t& position = found_.positions;
    ++position;
    for_each_step(c, [&](std::span<const node_id> nodes) {
      note_readers(c, nodes, true);
      for (node_id n : nodes) {
        const node& call = p_.program->nodes[n];
        const bool in_place = call.def && call.def->alias == aliasing::in_place && !call.outputs.empty();
        if (in_place && call.outputs[0] != no_value && index_[call.outputs[0]] >= 0)
          add_candidates(c, n, position);
      }
      note_readers(c, nodes, false);
      ++position;
    });
    ++position;
  }

  /// Notes which of these nodes reads each root, or forgets it. What launches nothing reads nothing.
  void note_readers(const chunk& c, std::span<const node_id> nodes, bool note) {
    for (node_id n : nodes) {
      const node& call = p_.program->nodes[n];
      if (launches_nothing(p_, call))
        continue;
      for (value_id v : call.inputs)
        if (v != no_value) {
          node_id& reader = reader_[root_on(p_, c, v)];
          reader = !note ? no_reader : reader == no_reader || reader == n ? n : several;
        }
    }
  }

  /// Whether values of equal dims have their elements in the same places.
  static bool lies_like(const value& a, const value& b) { return a.type == b.type && a.layout == b.layout; }

  void add_candidates(const chunk& c, node_id n, uint32_t position) {
    const node& call = p_.program->nodes[n];
    lifetime& out = found_.values[index_[call.outputs[0]]];
    out.reuse_begin = static_cast<uint32_t>(found_.candidates.size());
    for (value_id v : call.inputs) {
      if (v == no_value || !lies_like(p_.program->values[v], p_.program->values[out.value]))
        continue;
      const value_id root = root_on(p_, c, v);
      // Another operand on the same bytes may be read in another order than this one.
      const bool shared = std::any_of(call.inputs.begin(), call.inputs.end(), [&](value_id other) {
        return other != no_value && other != v && root_on(p_, c, other) == root;
      });
      // Nor must another node of the same wave read what this one overwrites.
      const bool dies = index_[root] >= 0 && found_.values[index_[root]].last == position && reader_[root] == n;
      if (dies && !shared)
        found_.candidates.push_back({v, static_cast<uint32_t>(index_[root])});
    }
    out.reuse_end = static_cast<uint32_t>(found_.candidates.size());
  }

  static constexpr node_id no_reader = -1, several = -2;

  const plan& p_;
  std::vector<int64_t> index_;  // by value, into found_.values; -1 if not in the arena
  std::vector<node_id> reader_; // by root: the node of the current step that reads it, or `no_reader`, or `several`
  std::vector<bool> leaves_;    // by root
  const std::vector<cache_append> appends_;
  device_lifetimes found_;
  bool host_memory_ = true;
};

} // namespace

std::vector<device_lifetimes> find_lifetimes(const plan& p) {
  std::vector<std::vector<chunk_id>> chunks(p.segment_count * p.devices.size());
  for (chunk_id c = 0; c < p.chunks.size(); ++c)
    chunks[p.chunks[c].segment * p.devices.size() + p.chunks[c].device].push_back(c);
  lifetime_finder finder(p);
  std::vector<device_lifetimes> all;
  all.reserve(chunks.size());
  for (const auto& group : chunks)
    all.push_back(finder.find(group));
  return all;
}

} // namespace troupe
