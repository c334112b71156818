#include "support/verify_memory.hpp"

#include "ops/op.hpp"
#include "plan/arena_space.hpp"
#include "plan/bind/memory.hpp"

#include <algorithm>
#include <map>

namespace troupe::test {
namespace {

constexpr uint32_t never = UINT32_MAX;

/// When a root's bytes are in use, in positions: uploads, waves (or nodes) and downloads of a device's chunks in turn.
struct use {
  uint32_t first = never, last = 0;
  uint32_t readers_of_last = 0; // nodes that read it at `last`
  node_id last_reader = -1;
};

class memory_checker {
public:
  memory_checker(const bound_plan& b, device_index d)
      : b_(b), p_(*b.source), g_(*p_.program), memory_(b.layout->memory[d]), device_(d), uses_(g_.values.size()) {}

  void run() {
    std::vector<const chunk*> chunks;
    for (chunk_id id = p_.segment_begin[b_.segment]; id < p_.segment_begin[b_.segment + 1]; ++id)
      if (p_.chunks[id].device == device_)
        chunks.push_back(&p_.chunks[id]);
    for (size_t i = 0; i < chunks.size(); ++i)
      walk(chunks, i);
    std::vector<value_id> order;
    for (size_t v = 0; v < uses_.size(); ++v)
      if (uses_[v].first != never)
        order.push_back(static_cast<value_id>(v));
    std::stable_sort(order.begin(), order.end(),
                     [&](value_id a, value_id b) { return uses_[a].first < uses_[b].first; });
    for (value_id v : order)
      place(v);
  }

private:
  /// If copies go beside work, those of the neighbours may be under way.
  void walk(std::span<const chunk* const> chunks, size_t i) {
    const chunk& c = *chunks[i];
    const bool beside = p_.devices[device_].copies_beside_work;
    for (value_id v : c.uploads)
      touch(v);
    if (beside && i + 1 < chunks.size())
      for (value_id v : chunks[i + 1]->uploads)
        touch(v);
    ++position_;
    if (c.wave_begin.empty())
      for (node_id n : c.nodes) {
        walk(c, n);
        ++position_;
      }
    for (uint32_t w = 0; w < c.wave_count(); ++w, ++position_)
      for (node_id n : c.wave(w))
        walk(c, n);
    for (value_id v : c.downloads)
      touch(root_on(p_, c, v));
    if (beside && i > 0)
      for (value_id v : chunks[i - 1]->downloads)
        touch(root_on(p_, *chunks[i - 1], v));
    ++position_;
  }

  void walk(const chunk& c, node_id n) {
    const node& call = g_.nodes[n];
    if (launches_nothing(p_, call))
      return;
    for (value_id v : call.inputs)
      if (v != no_value)
        read(root_on(p_, c, v), n);
    for (value_id v : call.outputs)
      if (v != no_value)
        touch(is_part(p_, v) ? p_.storage[v] : v);
  }

  /// Returns whether a root has bytes in the arena; throws if it needs some and has none.
  bool in_arena(value_id root) const {
    const value& info = g_.values[root];
    const bool elsewhere = (p_.producer[root] < 0 && (info.constant || info.known)) || info.type == dtype::string ||
                           p_.segment_of_value[root] > b_.segment || p_.devices[device_].host_memory;
    if (memory_.offset[root] < 0 && !elsewhere)
      fail(errc::internal, "device '{}': '{}' has no place in the arena", p_.devices[device_].name, info.name);
    return memory_.offset[root] >= 0;
  }

  void touch(value_id root) {
    if (!in_arena(root))
      return;
    use& u = uses_[root];
    u.first = std::min(u.first, position_);
    if (u.last != position_) {
      u.readers_of_last = 0;
      u.last_reader = -1;
    }
    u.last = position_;
  }

  void read(value_id root, node_id n) {
    touch(root);
    use& u = uses_[root];
    if (u.first != never && u.last_reader != n) {
      ++u.readers_of_last;
      u.last_reader = n;
    }
  }

  int64_t begin(value_id v) const { return memory_.offset[v]; }
  int64_t end(value_id v) const { return begin(v) + bytes_of(g_.values[v].type, volume(b_.dims[v])); }

  void place(value_id v) {
    if (end(v) - begin(v) > b_.layout->bytes.at(v))
      fail(errc::internal, "device '{}': '{}' needs more bytes than the layout has room for", p_.devices[device_].name,
           g_.values[v].name);
    if (begin(v) % arena_alignment != 0 || end(v) > memory_.arena_bytes)
      fail(errc::internal, "device '{}': '{}' is outside the arena or not aligned", p_.devices[device_].name,
           g_.values[v].name);
    if (begin(v) == end(v))
      return;
    // Neighbours that are no longer in use go; the others must leave room.
    auto at = active_.upper_bound(begin(v));
    if (at != active_.begin())
      --at;
    while (at != active_.end() && begin(at->second) < end(v)) {
      const value_id other = at->second;
      const bool apart = end(other) <= begin(v);
      if (!apart && uses_[other].last >= uses_[v].first && !overwrites(v, other))
        fail(errc::internal, "device '{}': '{}' and '{}' are in use at the same time and overlap",
             p_.devices[device_].name, g_.values[other].name, g_.values[v].name);
      at = apart ? std::next(at) : active_.erase(at);
    }
    active_.emplace(begin(v), v);
  }

  /// Whether in-place output `v` may overwrite `old`, which no other node reads then or later.
  bool overwrites(value_id v, value_id old) const {
    const node_id maker = p_.producer[v];
    if (maker < 0 || begin(v) != begin(old) || end(v) != end(old) || uses_[old].last != uses_[v].first)
      return false;
    const node& call = g_.nodes[maker];
    const chunk& c = p_.chunks[p_.chunk_of_node[maker]];
    std::vector<value_id> on_old = call.inputs;
    std::erase_if(on_old, [&](value_id in) { return in == no_value || root_on(p_, c, in) != old; });
    const bool one = !on_old.empty() && std::all_of(on_old.begin(), on_old.end(), [&](value_id in) {
      return in == on_old[0] && b_.dims[in] == b_.dims[v] && g_.values[in].type == g_.values[v].type &&
             g_.values[in].layout == g_.values[v].layout;
    });
    return one && call.def->alias == aliasing::in_place && call.outputs[0] == v && uses_[old].readers_of_last == 1 &&
           uses_[old].last_reader == maker;
  }

  const bound_plan& b_;
  const plan& p_;
  const graph& g_;
  const device_memory& memory_;
  device_index device_;
  std::vector<use> uses_; // by root
  uint32_t position_ = 0;
  std::map<int64_t, value_id> active_; // by offset: placed, perhaps still in use
};

} // namespace

void verify_memory(const bound_plan& b) {
  for (device_index d = 0; d < b.source->devices.size(); ++d) {
    memory_checker(b, d).run();
    const device_lifetimes& lifetimes = b.source->lifetimes[b.segment * b.source->devices.size() + d];
    const std::vector<int64_t> live = live_bytes(lifetimes, b.layout->memory[d], b.layout->bytes);
    const int64_t most = live.empty() ? 0 : *std::max_element(live.begin(), live.end());
    expects(most == b.layout->memory[d].peak_bytes, "live bytes do not reach the peak");
    expects(std::all_of(live.begin(), live.end(), [](int64_t bytes) { return bytes >= 0; }), "live bytes below zero");
  }
}

} // namespace troupe::test
