#include "vulkan/installed_plan.hpp"

#include "base/round_up.hpp"
#include "ops/op.hpp"
#include "plan/gpu_support.hpp"
#include "plan/memory.hpp"
#include "plan/waves.hpp"

#include <algorithm>
#include <cstring>

namespace troupe::vulkan {
namespace {

/// Staged values begin at multiples of this.
constexpr int64_t staging_alignment = 256;

class installer {
public:
  installer(installed_plan& out, const install_tools& tools)
      : out_(out), tools_(tools), bound_(*out.bound), plan_(*bound_.source), program_(*plan_.program),
        memory_(bound_.layout->memory.at(out.self)) {}

  void install() {
    out_.arena_bytes = memory_.arena_bytes;
    std::vector<chunk_id> own;
    for (chunk_id id = 0; id < plan_.chunks.size(); ++id)
      if (plan_.chunks[id].device == out_.self && plan_.chunks[id].segment == bound_.segment)
        own.push_back(id);
    for (chunk_id id : own) {
      installed_chunk& c = out_.chunks[id];
      c.first = id == own.front();
      c.last = id == own.back();
      install_chunk(plan_.chunks[id], c);
    }
    compile();
    upload_constants();
    tools_.uploads.finish();
  }

private:
  void install_chunk(const chunk& c, installed_chunk& out) {
    for (value_id v : c.uploads)
      out.uploads.push_back(transfer_of(c, v, out.upload_bytes));
    install_nodes(c, out);
    for (value_id v : c.downloads)
      out.downloads.push_back(transfer_of(c, v, out.download_bytes));
  }

  installed_transfer transfer_of(const chunk& c, value_id v, int64_t& staging) {
    const value& info = program_.values[v];
    const int64_t bytes = bytes_of(info.type, volume(bound_.dims[v]));
    installed_transfer t{v, info.type, bound_.dims[v], place_of(c, v, bytes), -1};
    if (!tools_.direct_copies || bytes < direct_copy_bytes) {
      t.staged = staging;
      staging += round_up(std::max<int64_t>(bytes, 1), staging_alignment);
    }
    return t;
  }

  /// Chooses every node's kernel, lays out their scratch memory (which may split a wave), and places the launches.
  void install_nodes(const chunk& c, installed_chunk& out) {
    std::vector<launch_list> chosen(c.nodes.size());
    std::vector<int64_t> needed(c.nodes.size(), 0);
    for (size_t i = 0; i < c.nodes.size(); ++i) {
      if (is_view(program_.nodes[c.nodes[i]]))
        continue;
      chosen[i] = choose(program_.nodes[c.nodes[i]]);
      for (int64_t bytes : chosen[i].scratch)
        needed[i] += arena_space(bytes);
    }
    const int64_t budget = plan_.devices[out_.self].memory_bytes - memory_.arena_bytes - plan_.weight_bytes[out_.self];
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
        for (const launch& l : chosen[i].launches)
          if (l.step == step) {
            out.launches.push_back(place(c, c.nodes[i], chosen[i], l, scratch.offset[i]));
            out.launches.back().barrier_before = std::exchange(first, false);
          }
    }
  }

  launch_list choose(const node& n) const {
    const gpu_call call = make_gpu_call(bound_, n, tools_.features);
    launch_lists lists = n.def->launches ? n.def->launches(call) : launch_lists{};
    if (lists.empty())
      fail(errc::unsupported, "{}: {} has no kernel for these dims; place it on the CPU, or use smaller dims",
           describe(n), tools_.context.facts().name);
    return std::move(lists[std::min<size_t>(tools_.alternative, lists.size() - 1)]);
  }

  installed_launch place(const chunk& c, node_id id, const launch_list& list, const launch& l, int64_t scratch) {
    const node& n = program_.nodes[id];
    installed_launch out{
        .key = {l.shader, l.constants, static_cast<uint32_t>(l.bindings.size())}, .call = id, .kernel = list.name};
    out.groups = l.groups;
    out.params = static_cast<int64_t>(blocks_.size()) * param_block_bytes;
    blocks_.push_back(l.params);
    for (const launch_binding& b : l.bindings) {
      bound_range range = range_of(c, n, list, b, scratch);
      range.offset += b.offset;
      // Ranges are whole words; every place has room for that.
      range.bytes = round_up(std::max<int64_t>(b.bytes, 1), 4);
      out.buffers.push_back(range);
    }
    return out;
  }

  bound_range range_of(const chunk& c, const node& n, const launch_list& list, const launch_binding& b,
                       int64_t scratch) {
    using source = launch_binding::source;
    switch (b.from) {
      case source::input: return place_of(c, n.inputs.at(b.index), b.bytes);
      case source::output: return place_of(c, n.outputs.at(b.index), b.bytes);
      case source::packed: {
        const weight_packing& packing = list.packed.at(b.index);
        return weight_range(*program_.values[n.inputs.at(packing.input)].constant, &packing);
      }
      case source::scratch: break;
    }
    for (uint32_t i = 0; i < b.index; ++i)
      scratch += arena_space(list.scratch[i]);
    return {bound_range::where::scratch, nullptr, scratch, b.bytes};
  }

  bound_range weight_range(const weight& w, const weight_packing* packing) {
    out_.weights.push_back(tools_.weights.get(w, packing));
    return {bound_range::where::fixed, out_.weights.back().get(), 0, 0};
  }

  /// Where the bytes of `v` are for nodes of `c`.
  bound_range place_of(const chunk& c, value_id v, int64_t bytes) {
    const value_id root = root_on(plan_, c, v);
    if (memory_.offset[root] >= 0)
      return {bound_range::where::arena, nullptr, memory_.offset[root], bytes};
    if (program_.values[root].constant) {
      bound_range range = weight_range(*program_.values[root].constant, nullptr);
      range.bytes = bytes;
      return range;
    }
    expects(bound_.known[root].defined(), "a value is neither in the arena nor a constant");
    const auto [at, is_new] = known_offset_.try_emplace(root, known_bytes_);
    if (is_new)
      known_bytes_ += round_up(std::max<int64_t>(bound_.known[root].bytes(), 1), staging_alignment);
    // Their place behind the parameter blocks is known when all blocks are there: see upload_constants.
    return {bound_range::where::fixed, nullptr, at->second, bytes};
  }

  void compile() {
    std::vector<pipeline_key> keys;
    for (const auto& [id, c] : out_.chunks)
      for (const installed_launch& l : c.launches)
        keys.push_back(l.key);
    tools_.kernels.prepare(keys);
  }

  void upload_constants() {
    const int64_t blocks = static_cast<int64_t>(blocks_.size()) * param_block_bytes;
    std::vector<std::byte> bytes(static_cast<size_t>(std::max<int64_t>(blocks + known_bytes_, 4)));
    for (size_t i = 0; i < blocks_.size(); ++i)
      if (!blocks_[i].empty())
        std::memcpy(bytes.data() + i * param_block_bytes, blocks_[i].data(), blocks_[i].size() * sizeof(uint32_t));
    for (const auto& [v, offset] : known_offset_)
      if (bound_.known[v].bytes() > 0)
        std::memcpy(bytes.data() + blocks + offset, bound_.known[v].data(),
                    static_cast<size_t>(bound_.known[v].bytes()));
    out_.constants = tools_.memory.allocate(static_cast<int64_t>(bytes.size()));
    tools_.uploads.upload(bytes, out_.constants);
    for (auto& [id, c] : out_.chunks) {
      const auto settle = [&](bound_range& r) {
        if (r.place == bound_range::where::fixed && !r.fixed) {
          r.fixed = &out_.constants;
          r.offset += blocks;
        }
      };
      for (installed_launch& l : c.launches)
        std::for_each(l.buffers.begin(), l.buffers.end(), settle);
      for (installed_transfer& t : c.downloads)
        settle(t.place);
    }
  }

  installed_plan& out_;
  const install_tools& tools_;
  const bound_plan& bound_;
  const plan& plan_;
  const graph& program_;
  const device_memory& memory_;
  std::vector<std::vector<uint32_t>> blocks_; // parameter blocks, by launch
  std::map<value_id, int64_t> known_offset_;  // behind the parameter blocks
  int64_t known_bytes_ = 0;
};

} // namespace

std::unique_ptr<installed_plan> install_plan(bound_plan_ptr bound, device_index self, const install_tools& tools) {
  auto out = std::make_unique<installed_plan>();
  out->bound = std::move(bound);
  out->self = self;
  installer(*out, tools).install();
  return out;
}

} // namespace troupe::vulkan
