// GPU kernels of TopK (shaders/top_k.comp): rows are sorted if they fit a workgroup's memory; of longer ones the best
// of pieces are sorted again until one piece is left; else, or if k is more than half a piece, rows are searched k
// times.
#include "base/round_up.hpp"
#include "launch/launch_rules.hpp"
#include "launch/parameters.hpp"
#include "launch/row_team.hpp"
#include "ops/op.hpp"

#include <algorithm>
#include <bit>

namespace troupe {
namespace {

constexpr int64_t longest_sorted = 4096;

struct top_k_call {
  std::string variant;
  row_extent rows;
  int64_t k;
  bool has_values, has_indices, largest;
};

uint32_t threads_for(int64_t wanted, const gpu_features& gpu) {
  const int64_t most = std::min<int64_t>(gpu.max_group_size, 256);
  return static_cast<uint32_t>(
      std::bit_floor(static_cast<uint64_t>(std::clamp<int64_t>(wanted, std::min<int64_t>(32, most), most))));
}

/// One launch; `sorted` is 0 for a search.
void add_top_k(launch_builder& b, const gpu_call& call, const top_k_call& c, int64_t sorted, int64_t pieces,
               int64_t candidates, const std::optional<launch_binding>& from, const std::optional<launch_binding>& to) {
  const launch_binding values = b.out(c.has_values ? 0 : 1), indices = b.out(c.has_indices ? 1 : 0);
  const launch_binding x = b.in(0);
  launch& l = b.add("top_k." + c.variant, flat_groups(c.rows.rows() * pieces, 1, call.gpu),
                    {x, to ? written(*to) : values, to ? written(*to) : indices, from ? reading(*from) : x,
                     to ? written(*to) : indices});
  l.constants = {threads_for(sorted > 0 ? sorted / 2 : c.rows.size, call.gpu),
                 static_cast<uint32_t>(sorted),
                 c.largest,
                 c.has_values,
                 c.has_indices,
                 from ? 0u : 1u,
                 to ? 0u : 1u};
  l.params = words_of(shader::top_k{.rows = c.rows.rows(),
                                    .size = c.rows.size,
                                    .inner = c.rows.inner,
                                    .k = c.k,
                                    .pieces = pieces,
                                    .candidate_count = candidates});
}

/// By pieces of `piece` elements, a power of two; one launch if a row is one.
std::optional<launch_list> by_sorting(const gpu_call& call, const top_k_call& c, int64_t piece) {
  launch_builder b(call, c.rows.size <= piece ? "top_k.sort" : "top_k.pieces");
  int64_t candidates = c.rows.size;
  std::optional<launch_binding> from;
  while (candidates > piece) {
    const int64_t pieces = (candidates + piece - 1) / piece;
    const launch_binding to = b.scratch(std::max<int64_t>(c.rows.rows() * pieces * c.k, 1) * 4);
    add_top_k(b, call, c, piece, pieces, candidates, from, to);
    b.next_step();
    from = to;
    candidates = pieces * c.k;
  }
  const auto sorted = next_power_of_two(std::max<int64_t>(candidates, 2));
  add_top_k(b, call, c, sorted, 1, candidates, from, std::nullopt);
  return b.finish();
}

launch_lists top_k_launches(const gpu_call& call) {
  const operand& x = call.inputs.at(0);
  const auto variant = arithmetic_variant(x.type, call.gpu);
  const bool has_values = call.has_output(0), has_indices = call.has_output(1);
  if (!variant || x.type == dtype::boolean || (!has_values && !has_indices))
    return {};
  const size_t axis = normalize_axis(call.attrs.integer("axis", -1), x.dims.size());
  const row_extent e{volume(std::span(x.dims).first(axis)), x.dims[axis], volume(std::span(x.dims).subspan(axis + 1))};
  const top_k_call c{*variant,   e,           call.outputs[has_values ? 0 : 1].dims.at(axis),
                     has_values, has_indices, call.attrs.integer("largest", 1) != 0};
  if (c.k > e.size)
    fail(errc::invalid_input, "TopK takes {} elements of a dim of {}", c.k, e.size);
  const int64_t pair_bytes = bits_of(x.type) == 64 ? 16 : 8;
  const auto piece = static_cast<int64_t>(
      std::bit_floor(static_cast<uint64_t>(std::min(longest_sorted, int64_t{call.gpu.shared_bytes} / pair_bytes))));
  launch_lists lists;
  if (e.size <= piece || 2 * c.k <= piece)
    if (auto list = by_sorting(call, c, piece))
      lists.push_back(std::move(*list));
  launch_builder b(call, "top_k.select");
  add_top_k(b, call, c, 0, 1, e.size, std::nullopt, std::nullopt);
  if (auto list = b.finish())
    lists.push_back(std::move(*list));
  return lists;
}

} // namespace

extern constinit const launch_rows top_k_rules = {
    {"", "TopK", top_k_launches},
};

} // namespace troupe
