#include "vulkan/gpu_program.hpp"

#include "base/round_up.hpp"
#include "device/moved_value.hpp"
#include "ops/op.hpp"
#include "plan/arena_space.hpp"
#include "plan/cut/transfers.hpp"
#include "plan/cut/waves.hpp"
#include "vulkan/row_copies.hpp"
#include "vulkan/staged_values.hpp"

#include <algorithm>
#include <cstring>
#include <future>
#include <set>

namespace troupe::vulkan {
namespace {

/// Staged values begin at multiples of this.
constexpr int64_t staging_alignment = 256;

class installer {
public:
  installer(gpu_program& out, const bound_plan& bound, device_index self, const dynamic_calls& calls,
            const install_tools& tools)
      : out_(out), bound_(bound), self_(self), calls_(calls), tools_(tools), layout_(*bound.layout),
        plan_(*bound.source), program_(*plan_.program), memory_(layout_.memory.at(self)) {}

  void install(std::vector<launch_list> choices) {
    add_scratch_room(choices);
    out_.parameters = parameter_table(calls_, layout_, choices);
    out_.choices = std::move(choices);
    std::vector<chunk_id> own;
    for (chunk_id id = 0; id < plan_.chunks.size(); ++id)
      if (plan_.chunks[id].device == self_ && plan_.chunks[id].segment == bound_.segment)
        own.push_back(id);
    kernels_.emplace(bound_, self_, calls_, out_.choices, tools_.kernels);
    const std::vector<program_kernels::chunk_ways> chosen = kernels_->choose(own);
    std::vector<pipeline_key> keys = kernels_->keys();
    if (!calls_.appends().empty())
      keys.push_back(row_copier::key(calls_.appends().front().widening >= 0));
    if (tools_.copies_rows && std::ranges::count(plan_.transfers, transfer_route::peer, &transfer::route) > 0)
      keys.push_back(row_copier::key());
    // Drivers take longer for kernels than the weights take to their places.
    auto compiled = std::async(std::launch::async, [&] { return tools_.kernels.compiled.prepare(keys); });
    for (size_t i = 0; i < own.size(); ++i) {
      installed_chunk& c = out_.chunks[own[i]];
      c.first = i == 0;
      c.last = i + 1 == own.size();
      // No other device waits for its copies, or all that the next one waits for is sent.
      c.next_is_free =
          !c.last && (!is_awaited(plan_, own[i]) || plan_.chunks[own[i + 1]].predecessors.back() <= own[i]);
      install_chunk(own[i], chosen[i], c);
    }
    upload_constants();
    tools_.uploads.finish();
    out_.kernels = compiled.get();
    out_.better = kernels_->take_better();
  }

private:
  void install_chunk(chunk_id id, const std::vector<launch_list>& chosen, installed_chunk& out) {
    const chunk& c = plan_.chunks[id];
    for (value_id v : c.uploads)
      out.uploads.push_back(
          transfer_of(c, v, is_written(v) ? written_input_bytes : direct_copy_bytes, out.upload_bytes));
    const std::set<value_id> for_peers = exchanged_of(id);
    for (value_id v : c.downloads)
      out.downloads.push_back(for_peers.contains(v) ? exchanged(c, v, out.exchanged_bytes)
                                                    : transfer_of(c, v, direct_copy_bytes, out.download_bytes));
    std::map<value_id, node_id> narrowing; // by upload
    for (installed_transfer& t : out.uploads)
      if (const node_id n = narrowing_node(id, t); n >= 0) {
        const value_id half = program_.nodes[n].outputs[0];
        t.narrowed = place_of(c, half, layout_.bytes[half]);
        t.conversion = *input_conversion_of(program_, program_.nodes[n]);
        narrowing[t.value] = n;
      }
    use_staged_uploads(id, narrowing, out);
    use_staged_downloads(id, chosen, out);
    install_nodes(c, chosen, out);
    install_appends(c, out);
    staged_.clear();
    narrowed_.clear();
    for (installed_launch& l : out.launches)
      for (const auto& [v, n] : narrowing)
        l.narrows = l.narrows || l.call == n;
    out.narrows = !narrowing.empty();
  }

  /// Decides which inputs the chunk's kernels read where they are staged: `place_of` says so from here on.
  void use_staged_uploads(chunk_id id, const std::map<value_id, node_id>& narrowing, installed_chunk& out) {
    const chunk& c = plan_.chunks[id];
    for (installed_transfer& t : out.uploads) {
      if (!is_written(t.value) || t.is_direct() || t.in_place)
        continue;
      if (t.used_staged = staged_values_.is_read_by_one(id, t.value); t.used_staged)
        staged_[root_on(plan_, c, t.value)] = {.place = bound_range::where::uploads, .offset = t.staged};
      if (!t.narrowed)
        continue;
      const value_id half = program_.nodes[narrowing.at(t.value)].outputs[0];
      if (t.narrowed_used_staged = staged_values_.is_read_by_one(id, half); t.narrowed_used_staged)
        narrowed_[root_on(plan_, c, half)] = t.staged;
    }
  }

  /// The same for short results that they write: what is scattered over the bus takes it ten times as long as a copy.
  void use_staged_downloads(chunk_id id, const std::vector<launch_list>& chosen, installed_chunk& out) {
    constexpr size_t many_outputs = 16; // mostly state that stays on the GPU, as many inputs are
    const chunk& c = plan_.chunks[id];
    for (installed_transfer& t : out.downloads)
      if (tools_.stages_results && program_.outputs.size() < many_outputs && !t.in_place &&
          layout_.bytes[t.value] <= direct_copy_bytes && !t.is_direct() && staged_values_.is_only_made(id, t.value) &&
          !kernel_that_makes(root_on(plan_, c, t.value), c, chosen).reads_outputs()) { // the host's memory is far
        t.used_staged = true;
        staged_[root_on(plan_, c, t.value)] = {
            .place = t.exchanged ? bound_range::where::exchanged : bound_range::where::downloads, .offset = t.staged};
      }
  }

  const launch_list& kernel_that_makes(value_id v, const chunk& c, const std::vector<launch_list>& chosen) const {
    return chosen[std::find(c.nodes.begin(), c.nodes.end(), plan_.producer[v]) - c.nodes.begin()];
  }

  /// Whether `v` is an input of the model that the host writes to the GPU's memory if it is small. Most of many inputs
  /// are state that stays on the GPU (a decoder's caches), which a kernel copies to its place several at a time.
  bool is_written(value_id v) const {
    constexpr size_t many_inputs = 16;
    return tools_.writes_inputs && program_.inputs.size() - calls_.appends().size() < many_inputs &&
           std::find(program_.inputs.begin(), program_.inputs.end(), v) != program_.inputs.end();
  }

  /// The node that narrows an input which is needed for nothing else; -1 if there is none. It is in the first wave,
  /// so that no other value uses its output's memory before.
  node_id narrowing_node(chunk_id id, const installed_transfer& t) const {
    const chunk& c = plan_.chunks[id];
    if (!is_written(t.value) || t.is_direct() || std::ranges::count(program_.outputs, t.value) || c.wave_count() == 0)
      return -1;
    node_id reader = -1;
    for (node_id n = 0; n < static_cast<node_id>(program_.nodes.size()); ++n)
      for (const value_id v : program_.nodes[n].inputs)
        if (v == t.value && std::exchange(reader, n) >= 0)
          return -1;
    const std::span<const node_id> first = c.wave(0);
    if (std::find(first.begin(), first.end(), reader) == first.end())
      return -1;
    const bool leaves = staged_values_.leaves(id, program_.nodes[reader].outputs[0]); // perhaps from another place
    return !leaves && input_conversion_of(program_, program_.nodes[reader]) ? reader : -1;
  }

  /// A value of fewer bytes than `direct` passes through staging memory.
  installed_transfer transfer_of(const chunk& c, value_id v, int64_t direct, int64_t& staging) {
    const int64_t bytes = layout_.bytes[v];
    installed_transfer t{v, program_.values[v].type, place_of(c, v, bytes), -1};
    t.in_place = calls_.rows_first().contains(v) || calls_.made().contains(v);
    if (t.in_place)
      return t;
    if (!tools_.direct_copies || (bytes < direct && !comes_from_peer(c, v))) {
      t.staged = staging;
      staging += round_up(std::max<int64_t>(bytes, 1), staging_alignment);
    }
    return t;
  }

  bool comes_from_peer(const chunk& c, value_id v) const {
    const node_id maker = plan_.producer[v];
    return maker >= 0 &&
           is_peer_edge(plan_, plan_.chunk_of_node[maker], static_cast<chunk_id>(&c - plan_.chunks.data()));
  }

  /// Returns those of the chunk's downloads that chunks on peers read, and nothing else does: empty if they are too
  /// large to be promised.
  std::set<value_id> exchanged_of(chunk_id id) const {
    std::set<value_id> all, others;
    int64_t bytes = 0;
    for (const transfer& t : plan_.transfers)
      if (t.from == id && (t.route != transfer_route::peer || calls_.made().contains(t.value)))
        others.insert(t.value);
      else if (t.from == id && all.insert(t.value).second)
        bytes += layout_.bytes[t.value];
    std::erase_if(all, [&](value_id v) { return others.contains(v); });
    return tools_.direct_copies && bytes <= most_promised_bytes ? all : std::set<value_id>();
  }

  installed_transfer exchanged(const chunk& c, value_id v, int64_t& memory) {
    installed_transfer t = transfer_of(c, v, most_promised_bytes + 1, memory);
    t.exchanged = !t.in_place;
    return t;
  }

  bool is_dynamic(node_id n) const { return calls_.class_of(n) != dynamic_calls::none; }

  /// Lays out the scratch memory of a chunk's kernels (which may split a wave), and places their launches.
  void install_nodes(const chunk& c, const std::vector<launch_list>& chosen, installed_chunk& out) {
    std::vector<int64_t> needed(c.nodes.size(), 0);
    for (size_t i = 0; i < c.nodes.size(); ++i)
      for (int64_t bytes : chosen[i].scratch)
        needed[i] += arena_space(bytes);
    const int64_t budget = plan_.devices[self_].memory_bytes - memory_.arena_bytes - plan_.weight_bytes[self_];
    const scratch_plan scratch = plan_scratch(c.wave_begin, needed, std::max<int64_t>(budget, 0),
                                              [&](uint32_t i) { return describe(program_.nodes[c.nodes[i]]); });
    out_.scratch_bytes = std::max(out_.scratch_bytes, scratch.bytes);
    for (size_t w = 0; w + 1 < scratch.wave_begin.size(); ++w)
      place_wave(c, chosen, scratch, scratch.wave_begin[w], scratch.wave_begin[w + 1], out);
  }

  /// The launches of the wave of nodes [begin, end), step by step: steps are barriers inside the wave.
  void place_wave(const chunk& c, const std::vector<launch_list>& chosen, const scratch_plan& scratch, uint32_t begin,
                  uint32_t end, installed_chunk& out) {
    uint32_t steps = 0;
    for (uint32_t i = begin; i < end; ++i)
      for (const launch& l : chosen[i].launches)
        steps = std::max(steps, l.step + 1);
    for (uint32_t step = 0; step < steps; ++step) {
      bool first = true;
      for (uint32_t i = begin; i < end; ++i)
        for (size_t l = 0; l < chosen[i].launches.size(); ++l)
          if (chosen[i].launches[l].step == step) {
            out.launches.push_back(place(c, c.nodes[i], chosen[i], l, scratch.offset[i]));
            out.launches.back().barrier_before = std::exchange(first, false);
          }
    }
  }

  installed_launch place(const chunk& c, node_id id, const launch_list& list, size_t index, int64_t scratch) {
    const launch& l = list.launches[index];
    installed_launch out{.key = kernels_->key_in_use(l, id), .call = id, .kernel = list.name, .groups = l.groups};
    if (is_dynamic(id)) {
      const uint32_t own = calls_.class_of(id);
      out.params = {bound_range::where::parameters, nullptr, out_.parameters.block_at(own, index), param_block_bytes};
      if (!l.fixed_groups)
        out.groups_at = out_.parameters.groups_at(own, index);
    } else {
      const int64_t at = std::ssize(blocks_) * param_block_bytes;
      out.params = {bound_range::where::fixed, out_.constants.get(), at, param_block_bytes};
      blocks_.push_back(l.params);
    }
    for (const launch_binding& b : l.bindings) {
      bound_range range = range_of(c, program_.nodes[id], list, b, scratch);
      range.advance(b.offset);
      // Ranges are whole words; every place has room for that. Capacities may pass a limit that no binding does.
      range.bytes = std::min(round_up(std::max<int64_t>(range.bytes, 1), 4), max_range_);
      out.buffers.push_back(range);
      out.writes_part |=
          b.from == launch_binding::source::output && is_part(plan_, program_.nodes[id].outputs.at(b.index));
    }
    return out;
  }

  /// Whether nothing of the chunk's last step makes what is appended, or reads the caches: then it is appended beside
  /// that step.
  bool appends_beside(const chunk& c, const installed_chunk& out) const {
    const auto ends =
        std::ranges::find_if(out.launches.rbegin(), out.launches.rend(), &installed_launch::barrier_before);
    return ends != out.launches.rend() && std::none_of(out.launches.rbegin(), std::next(ends), [&](const auto& l) {
             return calls_.meets_appends(plan_, c, l.call);
           });
  }

  /// Adds the dispatches that append new rows to caches that grow in place: last, when the caches have been read.
  void install_appends(const chunk& c, installed_chunk& out) {
    constexpr size_t each = shader::copy_rows_each;
    const std::vector<cache_append>& all = calls_.appends();
    const bool beside = appends_beside(c, out);
    for (size_t first = 0; first < all.size(); first += each) {
      const size_t count = std::min(each, all.size() - first);
      const bool widens = all[first].widening >= 0; // as all do, or none
      installed_launch l{.key = row_copier::key(widens), .call = all[first].node, .kernel = "append.in_place"};
      l.params = {bound_range::where::parameters, nullptr, out_.parameters.appends_at(first / each), param_block_bytes};
      l.barrier_before = first == 0 && !beside;
      int64_t longest = 0;
      for (size_t i = 0; i < each; ++i) {
        const size_t at = first + (i < count ? i : 0);
        bound_range fresh = place_of(c, all[at].fresh, layout_.bytes[all[at].fresh]);
        fresh.bytes = std::min(round_up(std::max<int64_t>(fresh.bytes, 1), 16), max_range_);
        l.buffers.insert(l.buffers.end(), {fresh, cache_range(at, max_range_)});
        longest = std::max(longest, fresh.bytes / (widens ? 8 : 16));
        if (i > 0 && i < count)
          l.others.push_back(all[at].node);
      }
      l.groups = {row_copy_groups(longest), static_cast<uint32_t>(count), 1};
      out.launches.push_back(std::move(l));
    }
  }

  /// Cache `at` of `dynamic_calls::appends`, its first `bytes` bytes.
  static bound_range cache_range(size_t at, int64_t bytes) {
    return {.place = bound_range::where::cache, .bytes = bytes, .cache = at};
  }

  bound_range range_of(const chunk& c, const node& n, const launch_list& list, const launch_binding& b,
                       int64_t scratch) {
    using source = launch_binding::source;
    const auto bytes_or = [&](int64_t whole) { return b.bytes == whole_operand ? whole : b.bytes; };
    switch (b.from) {
      case source::input:
      case source::output: {
        const value_id v = (b.from == source::input ? n.inputs : n.outputs).at(b.index);
        return place_of(c, v, bytes_or(layout_.bytes[is_part(plan_, v) ? plan_.storage[v] : v]));
      }
      case source::packed: return weight_range(*list.packed.at(b.index), b.bytes);
      case source::counters: {
        const int64_t first = std::exchange(out_.counter_bytes, out_.counter_bytes + arena_space(list.counters));
        return {bound_range::where::counters, nullptr, first, bytes_or(list.counters)};
      }
      case source::scratch: break;
    }
    for (uint32_t i = 0; i < b.index; ++i)
      scratch += arena_space(list.scratch[i]);
    return {bound_range::where::scratch, nullptr, scratch, bytes_or(list.scratch.at(b.index))};
  }

  bound_range weight_range(const weight& w, int64_t bytes) {
    out_.weights.push_back(tools_.weights.get(w, tools_.uploads));
    return {bound_range::where::fixed, out_.weights.back().get(), 0, bytes};
  }

  /// Where the bytes of `v` are for nodes of `c`.
  bound_range place_of(const chunk& c, value_id v, int64_t bytes) {
    if (const auto cache = calls_.rows_first().find(v); cache != calls_.rows_first().end())
      return cache_range(cache->second, bytes);
    const value_id root = root_on(plan_, c, v);
    if (const auto staged = staged_.find(root); staged != staged_.end()) {
      bound_range range = staged->second;
      range.bytes = bytes;
      return range;
    }
    if (memory_.offset[root] >= 0) {
      bound_range range{bound_range::where::arena, nullptr, memory_.offset[root], bytes};
      if (const auto half = narrowed_.find(root); half != narrowed_.end())
        range.narrowed_at = half->second;
      return range;
    }
    if (program_.values[root].constant)
      return weight_range(*program_.values[root].constant, bytes);
    expects(bound_.known[root].defined(), "a value is neither in the arena nor a constant");
    if (layout_.varies[root])
      return {bound_range::where::parameters, nullptr, out_.parameters.known_at(root), bytes};
    const auto [at, is_new] = known_offset_.try_emplace(root, known_bytes_);
    if (is_new)
      known_bytes_ += round_up(std::max<int64_t>(bound_.known[root].bytes(), 1), staging_alignment);
    // Their place after the parameter blocks is known when all blocks are there: see upload_constants.
    return {bound_range::where::fixed, nullptr, at->second, bytes};
  }

  void upload_constants() {
    const int64_t blocks = static_cast<int64_t>(blocks_.size()) * param_block_bytes;
    std::vector<std::byte> bytes(static_cast<size_t>(std::max<int64_t>(blocks + known_bytes_, 4)));
    for (size_t i = 0; i < blocks_.size(); ++i)
      if (!blocks_[i].empty())
        std::memcpy(bytes.data() + i * param_block_bytes, blocks_[i].data(), blocks_[i].size() * sizeof(uint32_t));
    for (const auto& [v, offset] : known_offset_)
      if (const tensor& known = bound_.known[v]; known.bytes() > 0)
        std::memcpy(bytes.data() + blocks + offset, known.data(), static_cast<size_t>(known.bytes()));
    *out_.constants = tools_.memory.allocate(static_cast<int64_t>(bytes.size()));
    tools_.uploads.upload(bytes, out_.constants);
    for (auto& [id, c] : out_.chunks) {
      const auto settle = [&](bound_range& r) {
        if (r.place == bound_range::where::fixed && !r.fixed) {
          r.fixed = out_.constants.get();
          r.offset += blocks;
        }
      };
      for (installed_launch& l : c.launches)
        std::for_each(l.buffers.begin(), l.buffers.end(), settle);
      for (installed_transfer& t : c.downloads)
        settle(t.place);
    }
  }

  gpu_program& out_;
  const bound_plan& bound_;
  const device_index self_;
  const dynamic_calls& calls_;
  const install_tools& tools_;
  const arena_layout& layout_;
  const plan& plan_;
  const graph& program_;
  const device_memory& memory_;
  std::optional<program_kernels> kernels_;
  const int64_t max_range_ = plan_.devices[self_].gpu->max_binding_bytes / 4 * 4;
  std::vector<std::vector<uint32_t>> blocks_; // parameter blocks of static launches
  const staged_values staged_values_{plan_, self_};
  std::map<value_id, bound_range> staged_;   // by root: what the chunk's kernels use in staging memory,
  std::map<value_id, int64_t> narrowed_;     // and where they do so only if the host has narrowed it
  std::map<value_id, int64_t> known_offset_; // of static known values, after the parameter blocks
  int64_t known_bytes_ = 0;
};

} // namespace

std::unique_ptr<gpu_program> make_program(const bound_plan& bound, device_index self, const dynamic_calls& calls,
                                          std::vector<launch_list> choices, const install_tools& tools) {
  auto out = std::make_unique<gpu_program>();
  installer(*out, bound, self, calls, tools).install(std::move(choices));
  return out;
}

} // namespace troupe::vulkan
