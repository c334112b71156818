#include "plan/cut/cache_appends.hpp"

#include "ops/head_layout.hpp"
#include "ops/op.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>

namespace troupe {
namespace {

/// The bytes of the words in which rows are copied.
constexpr int64_t word_bytes = 16;

/// Rounds of dropping after which none is left: real models take one.
constexpr int max_rounds = 8;

class append_finder {
public:
  explicit append_finder(const plan& p) : p_(p), outputs_(p.program->outputs.begin(), p.program->outputs.end()) {}

  std::vector<cache_append> run() {
    for (const chunk& c : p_.chunks)
      ++chunks_[{c.segment, c.device}];
    for (chunk_id id = 0; id < p_.chunks.size(); ++id)
      if (const chunk& c = p_.chunks[id]; !p_.devices[c.device].host_memory && chunks_.at({c.segment, c.device}) == 1)
        add_those_of(id);
    if (!found_.empty())
      drop_those_read_elsewhere();
    if (!found_.empty())
      join_widening();
    return std::move(found_);
  }

private:
  using places = std::unordered_map<value_id, size_t>;

  static places places_of(const std::vector<value_id>& values) {
    places at;
    for (size_t i = 0; i < values.size(); ++i)
      at.emplace(values[i], i);
    return at;
  }

  void add_those_of(chunk_id id) {
    const chunk& c = p_.chunks[id];
    std::optional<places> uploads, downloads;
    for (const node_id n : c.nodes) {
      const node& call = p_.program->nodes[n];
      if (!call.def || !call.def->appends)
        continue;
      if (!uploads) {
        uploads = places_of(c.uploads);
        downloads = places_of(c.downloads);
      }
      const value_id past = call.inputs[0], fresh = call.inputs[1], present = call.outputs[0];
      const auto up = uploads->find(past), down = downloads->find(present);
      if (p_.producer[past] < 0 && up != uploads->end() && down != downloads->end() && outputs_.contains(present) &&
          in_words(past) && past != fresh)
        found_.push_back({.chunk = id,
                          .node = n,
                          .past = past,
                          .fresh = fresh,
                          .present = present,
                          .upload = up->second,
                          .download = down->second});
    }
  }

  bool in_words(value_id cache) const {
    const value& v = p_.program->values[cache];
    return v.dims && (*v.dims)[3].is_constant() && bytes_of(v.type, (*v.dims)[3].constant()) % word_bytes == 0;
  }

  /// By the readers of each value that is past or present, until nothing changes: attention reads both its caches in
  /// one order.
  void drop_those_read_elsewhere() {
    bool changed = true;
    for (int round = 0; changed; ++round) {
      if (round == max_rounds)
        return found_.clear();
      past_.clear();
      present_.clear();
      for (size_t i = 0; i < found_.size(); ++i) {
        past_.emplace(found_[i].past, i);
        present_.emplace(found_[i].present, i);
      }
      std::vector<bool> dropped(found_.size(), false);
      for (node_id n = 0; n < static_cast<node_id>(p_.program->nodes.size()); ++n)
        find_dropped(n, dropped);
      size_t i = 0;
      changed = std::erase_if(found_, [&](const cache_append&) { return dropped[i++]; }) > 0;
    }
  }

  void find_dropped(node_id n, std::vector<bool>& dropped) const {
    const node& call = p_.program->nodes[n];
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      if (const auto at = present_.find(call.inputs[i]); at != present_.end())
        dropped[at->second] = true;
      if (const auto at = past_.find(call.inputs[i]); at != past_.end() && !may_read(n, i, found_[at->second]))
        dropped[at->second] = true;
    }
  }

  /// Whether node `n` may read its input `i`, which is `a.past`.
  bool may_read(node_id n, size_t i, const cache_append& a) const {
    const node& call = p_.program->nodes[n];
    const auto reads_cache = [&](size_t input) {
      return is_cache_input(call.domain, call.op_type, input) && past_.contains(call.inputs[input]);
    };
    return n == a.node || (p_.chunk_of_node[n] == a.chunk && is_cache_input(call.domain, call.op_type, i) &&
                           reads_cache(past_key_input) && reads_cache(past_value_input));
  }

  /// Makes the Casts of new rows parts of the appends, if all have such.
  void join_widening() {
    std::unordered_map<value_id, size_t> readers;
    for (const node& n : p_.program->nodes)
      for (const value_id v : n.inputs)
        ++readers[v];
    const auto widening_of = [&](const cache_append& a) -> node_id {
      const node_id n = p_.producer[a.fresh];
      if (n < 0 || p_.chunk_of_node[n] != a.chunk || readers[a.fresh] != 1 || outputs_.contains(a.fresh))
        return -1;
      const node& cast = p_.program->nodes[n];
      const auto type_of = [&](value_id v) { return p_.program->values[v].type; };
      const bool widens = cast.def && cast.def->converts && type_of(cast.inputs[0]) == dtype::float16 &&
                          type_of(a.fresh) == dtype::float32;
      return widens ? n : -1;
    };
    std::vector<node_id> casts;
    for (const cache_append& a : found_)
      casts.push_back(widening_of(a));
    if (std::find(casts.begin(), casts.end(), -1) != casts.end())
      return;
    for (size_t i = 0; i < casts.size(); ++i) {
      found_[i].widening = casts[i];
      found_[i].fresh = p_.program->nodes[casts[i]].inputs[0];
    }
  }

  const plan& p_;
  const std::unordered_set<value_id> outputs_;
  std::map<std::pair<uint32_t, device_index>, size_t> chunks_; // how many there are, by segment and device
  std::vector<cache_append> found_;
  places past_, present_; // of those found
};

} // namespace

std::vector<cache_append> find_cache_appends(const plan& p) {
  return append_finder(p).run();
}

} // namespace troupe
