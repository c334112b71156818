// Checks a plan's invariants from the plan alone, without the code that made it: plans are edited and loaded too.
#include "graph/bodies.hpp"
#include "plan/cut/joined_parts.hpp"

#include <algorithm>
#include <set>
#include <tuple>

namespace troupe {
namespace {

template <class... Args>
[[noreturn]] void broken(chunk_id id, fmt::format_string<Args...> format, Args&&... args) {
  fail(errc::internal, "chunk {}: {}", id, fmt::format(format, std::forward<Args>(args)...));
}

class plan_checker {
public:
  explicit plan_checker(const plan& p) : p_(p), g_(*p.program) {}

  void run() {
    check_tables();
    check_parts();
    check_roots();
    for (chunk_id id = 0; id < p_.chunks.size(); ++id) {
      check_edges(id);
      check_nodes(id);
      check_waves(id);
    }
    for (size_t n = 0; n < g_.nodes.size(); ++n)
      if (made_in_[n] == unseen)
        fail(errc::internal, "{} is in no chunk", describe(g_.nodes[n]));
    for (chunk_id id = 0; id < p_.chunks.size(); ++id)
      check_moves(id);
    check_transfers();
    check_purpose();
  }

  /// Every body of every control-flow node is planned, and its plan is right too.
  void check_bodies() const {
    size_t next = 0;
    for (node_id n = 0; n < static_cast<node_id>(g_.nodes.size()); ++n) {
      if (!has_body(g_.nodes[n]))
        continue;
      for (const node_body& body : bodies_of(g_.nodes[n])) {
        if (next >= p_.bodies.size() || p_.bodies[next].node != n || p_.bodies[next].name != body.name)
          fail(errc::internal, "{}: body '{}' is not planned", describe(g_.nodes[n]), body.name);
        verify(*p_.bodies[next++].compiled);
      }
    }
  }

private:
  static constexpr chunk_id unseen = UINT32_MAX;

  void check_tables() {
    const size_t nodes = g_.nodes.size(), values = g_.values.size();
    const bool fits = p_.placement.size() == nodes && p_.chunk_of_node.size() == nodes &&
                      p_.producer.size() == values && p_.storage.size() == values &&
                      p_.segment_of_value.size() == values && p_.slots.size() == values &&
                      p_.dims.size() == p_.segment_count && p_.segment_begin.size() == p_.segment_count + 1 &&
                      p_.segment_begin.back() == p_.chunks.size() && p_.segment_begin.front() == 0 &&
                      std::is_sorted(p_.segment_begin.begin(), p_.segment_begin.end());
    if (!fits)
      fail(errc::internal, "the plan's tables do not fit its graph");
    made_in_.assign(nodes, unseen);
    writer_.assign(values, -1);
  }

  /// A part is an input of the joined Concat whose output it is in, made beside it on a GPU, and no other node's input:
  /// so each part has one writer, and all that reads its bytes reads the Concat's output.
  void check_parts() const {
    std::vector<uint32_t> uses(g_.values.size(), 0);
    for (value_id v : g_.outputs)
      ++uses[v];
    for (const node& n : g_.nodes)
      for (value_id v : n.inputs)
        if (v != no_value)
          ++uses[v];
    for (value_id v = 0; v < static_cast<value_id>(g_.values.size()); ++v) {
      if (!is_part(p_, v))
        continue;
      const std::string& name = g_.values[v].name;
      const value_id whole = p_.storage[v];
      const node_id maker = p_.producer[v], concat = p_.producer.at(whole);
      if (concat < 0 || !is_joined(p_, g_.nodes[concat]) || p_.storage[whole] != whole)
        fail(errc::internal, "'{}' is a part of '{}', which is not joined", name, g_.values[whole].name);
      const device_info& device = p_.devices.at(p_.placement[maker]);
      const auto segment = [&](node_id n) { return p_.chunks.at(p_.chunk_of_node[n]).segment; };
      if (p_.placement[maker] != p_.placement[concat] || segment(maker) != segment(concat) || !device.gpu)
        fail(errc::internal, "'{}' is a part of '{}', but is not made beside it on a GPU", name, g_.values[whole].name);
      const auto& inputs = g_.nodes[concat].inputs;
      if (uses[v] != 1 || std::find(inputs.begin(), inputs.end(), v) == inputs.end())
        fail(errc::internal, "'{}' is a part that is not only for {}", name, describe(g_.nodes[concat]));
    }
    for (const node& n : g_.nodes)
      for (value_id v : is_joined(p_, n) ? n.inputs : std::vector<value_id>{})
        if (v == no_value || p_.storage[v] != n.outputs[0] || !is_part(p_, v))
          fail(errc::internal, "{} is joined, but one of its inputs is not a part", describe(n));
  }

  void check_edges(chunk_id id) const {
    const chunk& c = p_.chunks[id];
    if (c.device >= p_.devices.size())
      broken(id, "device {} does not exist", c.device);
    if (c.segment >= p_.segment_count || id < p_.segment_begin[c.segment] || id >= p_.segment_begin[c.segment + 1])
      broken(id, "it is outside its segment {}", c.segment);
    if (c.initial_dependency_count != c.predecessors.size())
      broken(id, "it counts {} dependencies but has {}", c.initial_dependency_count, c.predecessors.size());
    for (const auto* ids : {&c.predecessors, &c.dependents})
      if (std::adjacent_find(ids->begin(), ids->end(), std::greater_equal<>()) != ids->end())
        broken(id, "its edges are not ascending");
    for (chunk_id before : c.predecessors) {
      if (before >= id || p_.chunks[before].segment != c.segment)
        broken(id, "predecessor {} does not come before it in its segment", before);
      const auto& next = p_.chunks[before].dependents;
      if (!std::binary_search(next.begin(), next.end(), id))
        broken(id, "predecessor {} does not list it as dependent", before);
    }
    for (chunk_id next : c.dependents) {
      const bool listed = next < p_.chunks.size() && std::binary_search(p_.chunks[next].predecessors.begin(),
                                                                        p_.chunks[next].predecessors.end(), id);
      if (!listed)
        broken(id, "dependent {} does not list it as predecessor", next);
    }
  }

  void check_nodes(chunk_id id) {
    const chunk& c = p_.chunks[id];
    for (node_id n : c.nodes) {
      if (n < 0 || n >= static_cast<node_id>(g_.nodes.size()))
        broken(id, "node {} does not exist", n);
      if (made_in_[n] != unseen)
        broken(id, "{} is in chunk {} already", describe(g_.nodes[n]), made_in_[n]);
      if (p_.placement[n] != c.device || p_.chunk_of_node[n] != id)
        broken(id, "{} is placed elsewhere", describe(g_.nodes[n]));
      check_operands(id, n);
      check_results(id, n);
      made_in_[n] = id;
    }
    const auto place = std::make_pair(c.segment, c.device);
    if (const auto it = last_on_.find(place); it != last_on_.end()) {
      const auto& before = c.predecessors;
      if (!std::binary_search(before.begin(), before.end(), it->second))
        broken(id, "it is not ordered after chunk {} of its device", it->second);
    }
    last_on_[place] = id;
  }

  /// Waves cover the chunk's nodes, and no node of a wave reads what another one of it makes, be it a part of what is
  /// read.
  void check_waves(chunk_id id) const {
    const chunk& c = p_.chunks[id];
    const auto& begin = c.wave_begin;
    if (p_.devices[c.device].host_memory) {
      if (!begin.empty())
        broken(id, "it has waves, but its device runs one node after the other");
      return;
    }
    if (begin.empty() || begin.front() != 0 || begin.back() != c.nodes.size() ||
        std::adjacent_find(begin.begin(), begin.end(), std::greater_equal<>()) != begin.end())
      broken(id, "its waves do not cover its nodes");
    std::map<node_id, uint32_t> wave_of;
    for (uint32_t w = 0; w < c.wave_count(); ++w)
      for (node_id n : c.wave(w))
        wave_of[n] = w;
    for (const auto& entry : wave_of) {
      const node_id n = entry.first;
      const uint32_t wave = entry.second;
      if (launches_nothing(p_, g_.nodes[n]))
        continue;
      for (value_id v : g_.nodes[n].inputs)
        if (v != no_value)
          for_each_written(p_, root_on(p_, c, v), [&](value_id written) {
            const auto made = wave_of.find(p_.producer[written]);
            if (made != wave_of.end() && made->second >= wave)
              broken(id, "{} reads '{}', which is made in wave {}, not before its own wave {}", describe(g_.nodes[n]),
                     g_.values[v].name, made->second, wave);
          });
    }
  }

  bool comes_from_host(value_id v) const { return p_.producer[v] < 0 && (g_.values[v].constant || g_.values[v].known); }

  /// Every operand is there: made on the device before, or uploaded to it by now.
  void check_operands(chunk_id id, node_id n) {
    const chunk& c = p_.chunks[id];
    for (value_id v : c.uploads)
      uploaded_.insert({c.segment, c.device, v});
    for (value_id v : g_.nodes[n].inputs) {
      if (v == no_value || comes_from_host(v) || uploaded_.contains({c.segment, c.device, v}))
        continue;
      const node_id from = p_.producer[v];
      const chunk_id made = from < 0 ? unseen : made_in_[from];
      if (made == unseen || p_.chunks[made].device != c.device || p_.chunks[made].segment != c.segment)
        broken(id, "{} reads '{}', which is not on its device", describe(g_.nodes[n]), g_.values[v].name);
      if (p_.segment_of_value[v] > c.segment)
        broken(id, "{} reads '{}', whose shape is not known yet", describe(g_.nodes[n]), g_.values[v].name);
    }
  }

  /// A tensor has one writer.
  void check_results(chunk_id id, node_id n) {
    for (value_id v : g_.nodes[n].outputs) {
      if (v == no_value)
        continue;
      if (g_.values[v].constant)
        broken(id, "{} writes '{}', which is constant", describe(g_.nodes[n]), g_.values[v].name);
      if (writer_[v] >= 0)
        broken(id, "{} writes '{}', which {} writes already", describe(g_.nodes[n]), g_.values[v].name,
               describe(g_.nodes[writer_[v]]));
      if (p_.producer[v] != n)
        broken(id, "{} writes '{}', but the plan's tables say otherwise", describe(g_.nodes[n]), g_.values[v].name);
      writer_[v] = n;
    }
  }

  void check_moves(chunk_id id) {
    const chunk& c = p_.chunks[id];
    for (value_id v : c.uploads) {
      if (!moved_.insert({c.segment, c.device, v}).second)
        broken(id, "'{}' is moved to the device twice", g_.values[v].name);
      const node_id from = p_.producer[v];
      if (from < 0)
        continue;
      const chunk_id source = p_.chunk_of_node[from];
      const auto& down = p_.chunks[source].downloads;
      if (std::find(down.begin(), down.end(), v) == down.end())
        broken(id, "'{}' is not downloaded by chunk {}, which makes it", g_.values[v].name, source);
      const bool earlier = p_.chunks[source].segment < c.segment;
      if (!earlier && !std::binary_search(c.predecessors.begin(), c.predecessors.end(), source))
        broken(id, "it does not wait for chunk {}, which makes '{}'", source, g_.values[v].name);
    }
    for (value_id v : c.downloads) {
      if (p_.producer[v] < 0 || p_.chunk_of_node[p_.producer[v]] != id)
        broken(id, "it downloads '{}', which it does not make", g_.values[v].name);
      if (!downloaded_.insert(v).second)
        broken(id, "'{}' is downloaded twice", g_.values[v].name);
    }
  }

  /// Whether a value goes from a GPU to one that waits for it, within a segment.
  bool crosses_to_peer(const transfer& t) const {
    if (!t.from || !t.to || p_.chunks[*t.from].segment != p_.chunks[*t.to].segment)
      return false;
    const device_index from = p_.chunks[*t.from].device, to = p_.chunks[*t.to].device;
    return from != to && are_peers(p_.devices[from], p_.devices[to]);
  }

  transfer_route needed_route(const transfer& t) const {
    static const device_info caller;
    const device_info& from = t.from ? p_.devices[p_.chunks[*t.from].device] : caller;
    const device_info& to = t.to ? p_.devices[p_.chunks[*t.to].device] : caller;
    return from.host != to.host                   ? transfer_route::remote
           : crosses_to_peer(t)                   ? transfer_route::peer
           : !from.host_memory || !to.host_memory ? transfer_route::host_block
                                                  : transfer_route::direct;
  }

  /// The transfers are those that uploads, outputs and shapes need, each by the route that its ends need.
  void check_transfers() const {
    std::set<std::pair<value_id, std::optional<chunk_id>>> needed;
    for (chunk_id id = 0; id < p_.chunks.size(); ++id)
      for (value_id v : p_.chunks[id].uploads)
        needed.emplace(v, id);
    for (value_id v : g_.outputs)
      if (p_.producer[v] >= 0)
        needed.emplace(v, std::nullopt);
    for (const data_symbol& symbol : p_.symbols)
      needed.emplace(symbol.value, std::nullopt);
    for (const transfer& t : p_.transfers) {
      if (needed.erase({t.value, t.to}) == 0)
        fail(errc::internal, "a transfer of value {} leads to a device that does not need it, or has it already",
             t.value);
      const std::string& name = g_.values[t.value].name;
      const node_id maker = p_.producer[t.value];
      if (t.from != (maker < 0 ? std::nullopt : std::optional(p_.chunk_of_node[maker])))
        fail(errc::internal, "a transfer of '{}' does not begin at the chunk that makes it", name);
      if (t.route != needed_route(t))
        fail(errc::internal, "a transfer of '{}' is {}, but its ends need {}", name, to_string(t.route),
             to_string(needed_route(t)));
    }
    if (!needed.empty())
      fail(errc::internal, "no transfer leads '{}' to where it is needed", g_.values[needed.begin()->first].name);
  }

  /// Every chunk is on a path to an output, or computes a shape that a later segment needs.
  void check_purpose() const {
    std::vector<bool> useful(p_.chunks.size(), false);
    std::set<value_id> wanted(g_.outputs.begin(), g_.outputs.end());
    for (const data_symbol& symbol : p_.symbols)
      wanted.insert(symbol.value);
    for (chunk_id id = static_cast<chunk_id>(p_.chunks.size()); id-- > 0;) {
      const chunk& c = p_.chunks[id];
      const auto is_useful = [&](chunk_id next) { return useful[next]; };
      useful[id] = std::any_of(c.dependents.begin(), c.dependents.end(), is_useful);
      for (value_id v : c.downloads)
        useful[id] = useful[id] || wanted.contains(v);
      if (!useful[id])
        broken(id, "no output depends on it");
      for (value_id v : c.uploads)
        wanted.insert(v);
    }
    for (value_id v : g_.outputs)
      if (p_.producer[v] >= 0 && !downloaded_.contains(v))
        fail(errc::internal, "output '{}' is not downloaded by any chunk", g_.values[v].name);
  }

  void check_roots() const {
    for (uint32_t s = 0; s < p_.segment_count; ++s) {
      const auto begin = p_.chunks.begin() + p_.segment_begin[s], end = p_.chunks.begin() + p_.segment_begin[s + 1];
      if (begin != end && std::none_of(begin, end, [](const chunk& c) { return c.initial_dependency_count == 0; }))
        fail(errc::internal, "segment {} has no chunk that can start", s);
    }
  }

  using place_and_value = std::tuple<uint32_t, device_index, value_id>;

  const plan& p_;
  const graph& g_;
  std::vector<chunk_id> made_in_; // by node
  std::vector<node_id> writer_;   // by value
  std::map<std::pair<uint32_t, device_index>, chunk_id> last_on_;
  std::set<place_and_value> uploaded_, moved_;
  std::set<value_id> downloaded_;
};

} // namespace

void verify(const plan& p) {
  verify_chunks(p);
  plan_checker(p).check_bodies();
}

void verify_chunks(const plan& p) {
  plan_checker(p).run();
}

} // namespace troupe
