// troupe.Attention and Attention: one pass over the keys. Where there are matrices, these do it for usual float16 heads
// (shaders/attention_matrices.comp); otherwise tiles in shared memory (attention_tiles.cpp). Few queries:
// attention_row.cpp.
#include "launch/attention.hpp"
#include "launch/launch_rules.hpp"
#include "launch/movement.hpp"
#include "ops/head_layout.hpp"
#include "tensor/shape.hpp"

#include <algorithm>
#include <cmath>

namespace troupe {
namespace {

constexpr uint32_t join_group = 128;

/// Whether attention_matrices.comp computes what the call asks for, and few rows of its tiles are beyond the last
/// query.
bool fits_matrices(const gpu_call& call, const attention_call& c) {
  constexpr int64_t fewest_queries = 16;
  constexpr uint32_t largest_group = 256;
  const bool leaves_out = c.skips && (call.has_input(3) || c.causal); // what is masked, whatever is there
  return call.gpu.cooperative_matrix && call.gpu.group_matrices && call.gpu.subgroup_size == 32 &&
         call.gpu.max_group_size >= largest_group && call.gpu.shared_bytes >= shader::attention_shared_bytes &&
         call.inputs[0].type == dtype::float16 && (c.width == 32 || c.width == 64 || c.width == 128) &&
         c.value_width == c.width && c.softcap == 0 && !c.limited && c.queries >= fewest_queries && c.keys > 0 &&
         c.scale > 0 && !leaves_out;
}

/// What a group of attention_matrices.comp computes: blocks of 16 queries; parts of the keys, each in tiles of `keys`.
struct matrix_tile {
  uint32_t blocks, parts, keys;

  uint32_t rows() const { return 16 * blocks; }
  uint32_t threads() const { return 32 * blocks * parts; }
  int64_t groups(const attention_call& c) const { return c.batch * c.heads * ((c.queries + rows() - 1) / rows()); }
};

/// The tiles that there are, best first: of the fewest queries whose groups run all at once.
std::vector<matrix_tile> matrix_tiles(const attention_call& c, const gpu_features& gpu) {
  std::vector<matrix_tile> tiles{{2, 4, 32}, {4, 2, 32}, {4, 1, 64}};
  if (c.width == 128)
    tiles = {{2, 2, 32}, {4, 1, 32}};
  auto best = std::ranges::find_if(tiles, [&](const matrix_tile& t) { return t.groups(c) <= gpu.units; });
  std::iter_swap(tiles.begin(), best == tiles.end() ? best - 1 : best);
  return tiles;
}

uint32_t matrix_flags(const gpu_call& call, const attention_call& c) {
  const bool has_mask = call.has_input(3), is_row = has_mask && mask_steps(call, c).z == 0;
  return (has_mask ? shader::attention_mask : 0) | (is_row ? shader::attention_row_mask : 0) |
         (c.causal ? shader::attention_causal : 0) | (c.batch > 1 ? shader::attention_batched : 0) |
         (c.heads > c.kv_heads ? shader::attention_shares : 0);
}

/// Whether to find out which keys a mask hides before they are computed: that takes some 5 µs. Where queries are
/// causal, all that the mask shows may be later than a query.
bool finds_ranges(const gpu_call& call, const attention_call& c) {
  constexpr int64_t fewest_scores = int64_t{1} << 22;
  if (!call.has_input(3) || c.causal)
    return false;
  const shader::uvec4 steps = mask_steps(call, c);
  return steps.z == c.keys && steps.w == 1 && c.batch * c.heads * c.queries * c.keys >= fewest_scores;
}

/// Adds the launch that finds them, in a step of its own.
launch_binding add_ranges(launch_builder& b, const gpu_call& call, const attention_call& c) {
  const int64_t rows = call.inputs[3].size() / c.keys;
  const launch_binding ranges = b.scratch(rows * 16);
  launch& l = b.add("mask_ranges.f16", flat_groups(rows, 1, call.gpu), {b.in(3), written(ranges)});
  l.params = words_of(shader::mask_ranges{.rows = rows, .keys = c.keys});
  b.next_step();
  return ranges;
}

/// By matrices of subgroups.
std::optional<launch_list> matrices_for(const gpu_call& call, const attention_call& c, const std::string& variant,
                                        const matrix_tile& t) {
  launch_builder b(call, fmt::format("attention.matrices.{}x{}x{}", t.blocks, t.parts, t.keys));
  const bool by_ranges = finds_ranges(call, c);
  const launch_binding ranges = by_ranges ? add_ranges(b, call, c) : b.in(0);
  if (!add_attention_outputs(b, call, c, variant))
    return std::nullopt;
  launch& l = b.add(
      fmt::format("attention_matrices.f16_{}x{}", c.width, t.keys), flat_groups(t.groups(c), 1, call.gpu),
      {b.in(0), attention_rows(b, c, 1), attention_rows(b, c, 2), b.in(call.has_input(3) ? 3 : 0), b.out(0), ranges});
  l.constants = {t.threads(), t.blocks, t.parts, matrix_flags(call, c) | (by_ranges ? shader::attention_ranges : 0)};
  l.params = attention_parameters(call, c, c.queries, t.rows(), t.groups(c), c.keys);
  return b.finish();
}

/// The kernels that read keys and values of one operand each.
launch_lists whole_lists(const gpu_call& call, const attention_call& c, const std::string& variant) {
  launch_lists lists;
  if (fits_matrices(call, c))
    for (const matrix_tile& t : matrix_tiles(c, call.gpu))
      if (auto list = matrices_for(call, c, variant, t))
        lists.push_back(std::move(*list));
  launch_lists tiles = attention_by_tiles(call, c, variant);
  std::move(tiles.begin(), tiles.end(), std::back_inserter(lists));
  return lists;
}

/// The same for keys and values that are apart: joined in scratch memory first.
launch_lists joined_lists(const gpu_call& call, attention_call c, const std::string& variant) {
  gpu_call with_rows{call.attrs, call.inputs, {call.outputs[0]}, call.gpu, call.ways, call.tiles};
  for (const int64_t width : {c.width, c.value_width})
    with_rows.outputs.push_back({.type = call.inputs[0].type, .dims = {c.batch, c.kv_heads, c.keys, width}});
  c.joined = true;
  c.kv_bshd = false;
  launch_lists lists = whole_lists(with_rows, c, variant);
  for (launch_list& list : lists) {
    const auto first = word(static_cast<int64_t>(list.scratch.size()));
    for (launch& l : list.launches)
      for (launch_binding& binding : l.bindings)
        if (binding.from == launch_binding::source::output && binding.index > 0) {
          binding.from = launch_binding::source::scratch;
          binding.index += first - 1;
        }
    for (const size_t i : {1, 2})
      list.scratch.push_back(with_rows.outputs[i].bytes());
    list.name += ".joined";
  }
  return lists;
}

launch_lists launch_attention(const gpu_call& call, const attention_call& c) {
  const dtype type = call.inputs[0].type;
  const bool is_float = type == dtype::float32 || type == dtype::float16;
  const auto variant = is_float ? arithmetic_variant(type, call.gpu) : std::nullopt;
  if (!variant || call.inputs[1].type != type || call.inputs[2].type != type || call.gpu.max_group_size < join_group)
    return {};
  if (call.has_input(3) && call.inputs[3].type != type && call.inputs[3].type != dtype::boolean)
    return {};
  const bool apart = c.past > 0 && !c.joined;
  launch_lists lists = attention_of_few_queries(call, c, *variant), others;
  if (!apart)
    others = whole_lists(call, c, *variant);
  else if (!c.past_wide) // copies do not convert
    others = joined_lists(call, c, *variant);
  std::move(others.begin(), others.end(), std::back_inserter(lists));
  return lists;
}

/// Dims of an operand in the order batch, heads, positions, width. `heads`: of an operand of rank 3, else 0.
std::array<int64_t, 4> logical(const shape& dims, bool bshd, int64_t heads) {
  if (dims.size() == 4)
    return {dims[0], dims[bshd ? 2 : 1], dims[bshd ? 1 : 2], dims[3]};
  if (dims.size() != 3 || heads < 1 || dims[2] % heads != 0)
    fail(errc::invalid_input, "attention: {} does not hold {} heads", to_string(dims), heads);
  return {dims[0], heads, dims[1], dims[2] / heads};
}

attention_call sizes_of(const std::array<int64_t, 4>& q, const std::array<int64_t, 4>& k,
                        const std::array<int64_t, 4>& v) {
  if (k[1] < 1 || q[1] % k[1] != 0 || q[3] != k[3] || q[0] != k[0] || q[0] != v[0] || k[1] != v[1] || k[2] != v[2])
    fail(errc::invalid_input, "attention: Q {}, K {} and V {} do not fit together",
         to_string(shape(q.begin(), q.end())), to_string(shape(k.begin(), k.end())),
         to_string(shape(v.begin(), v.end())));
  return {.batch = q[0],
          .heads = q[1],
          .kv_heads = k[1],
          .queries = q[2],
          .keys = k[2],
          .width = q[3],
          .value_width = v[3],
          .mask_keys = k[2]};
}

/// Keeps the heads of input `i` that the call reads in `dims`, which are in logical order.
heads_within choose_heads(const gpu_call& call, size_t i, std::array<int64_t, 4>& dims) {
  const head_range read = heads_read(call.attrs, i, dims[1]);
  const heads_within within{read.first, dims[1] - read.count};
  dims[1] = read.count;
  return within;
}

bool has_past_of(const gpu_call& call, dtype type) {
  return call.inputs[past_key_input].type == type && call.inputs[past_value_input].type == type;
}

/// Puts inputs 4 and 5 in front of the keys and values.
void add_past(const gpu_call& call, attention_call& c) {
  const auto k = cache_dims<int64_t>(call.attrs, call.inputs[past_key_input].dims),
             v = cache_dims<int64_t>(call.attrs, call.inputs[past_value_input].dims);
  const auto fits = [&](const std::array<int64_t, 4>& dims, int64_t width) {
    return dims == std::array{c.batch, c.kv_heads, k[2], width};
  };
  if (!fits(k, c.width) || !fits(v, c.value_width))
    fail(errc::invalid_input, "attention: past keys {} and values {} do not fit the others",
         to_string(call.inputs[past_key_input].dims), to_string(call.inputs[past_value_input].dims));
  c.past_first = positions_first(call.attrs);
  c.past_wide = call.inputs[0].type == dtype::float16 && has_past_of(call, dtype::float32);
  c.past = k[2];
  c.keys += c.past;
  c.mask_keys = c.keys;
}

} // namespace

launch_binding attention_rows(const launch_builder& b, const attention_call& c, size_t i) {
  return c.joined ? reading(b.out(i)) : b.in(i);
}

uint32_t attention_flags(const gpu_call& call, const attention_call& c) {
  const bool mask = call.has_input(3), bytes = mask && call.inputs[3].type == dtype::boolean;
  return (mask ? shader::attention_mask : 0) | (bytes ? shader::attention_mask_bytes : 0) |
         (c.causal ? shader::attention_causal : 0) | (c.skips || c.keys == 0 ? shader::attention_skips : 0);
}

std::vector<uint32_t> attention_parameters(const gpu_call& call, const attention_call& c, int64_t rows,
                                           uint32_t tile_rows, int64_t groups, int64_t split_keys) {
  const heads_within k_within = c.joined ? heads_within{} : c.k_within,
                     v_within = c.joined ? heads_within{} : c.v_within;
  const auto k_steps = steps_of(c.kv_heads, c.keys, c.width, c.kv_bshd, k_within),
             v_steps = steps_of(c.kv_heads, c.keys, c.value_width, c.kv_bshd, v_within);
  return words_of(shader::attention{.groups = groups,
                                    .row_blocks = (rows + tile_rows - 1) / tile_rows,
                                    .rows = rows,
                                    .queries = c.queries,
                                    .keys = c.keys,
                                    .width = c.width,
                                    .value_width = c.value_width,
                                    .kv_heads = c.kv_heads,
                                    .sharing = c.heads / c.kv_heads,
                                    .split_keys = split_keys,
                                    .mask_keys = c.mask_keys,
                                    .all_rows = c.batch * c.heads * c.queries,
                                    .causal_offset = static_cast<int>(c.causal_offset),
                                    .scale = c.scale,
                                    .softcap = c.softcap,
                                    .q_steps = steps_of(c.heads, c.queries, c.width, c.q_bshd, c.q_within),
                                    .k_steps = k_steps,
                                    .v_steps = v_steps,
                                    .y_steps = steps_of(c.heads, c.queries, c.value_width, c.y_bshd),
                                    .mask_steps = mask_steps(call, c)});
}

bool add_attention_outputs(launch_builder& b, const gpu_call& call, const attention_call& c,
                           const std::string& variant) {
  bool good = true;
  for (const size_t i : {1, 2}) {
    if (!c.joined)
      break;
    const int64_t width = i == 1 ? c.width : c.value_width;
    const int64_t past = c.past, present = c.keys - past;
    const shader::uvec4 from = steps_of(c.kv_heads, present, width, c.new_bshd, i == 1 ? c.k_within : c.v_within);
    good = good && add_copy(b, call,
                            {.input = i,
                             .output = i,
                             .from = from.w.word,
                             .to = past * width,
                             .axes = {{c.batch, from.x.word, c.kv_heads * c.keys * width},
                                      {c.kv_heads, from.y.word, c.keys * width},
                                      {present, from.z.word, width},
                                      {width, 1, 1}}});
    b.next_step();
    if (past > 0) {
      const size_t input = i == 1 ? past_key_input : past_value_input;
      const shader::uvec4 steps = past_steps(c, width);
      good = good && add_copy(b, call,
                              {.input = input,
                               .output = i,
                               .axes = {{c.batch, steps.x.word, c.kv_heads * c.keys * width},
                                        {c.kv_heads, steps.y.word, c.keys * width},
                                        {past, steps.z.word, width},
                                        {width, 1, 1}}});
    }
    b.next_step();
  }
  if (call.has_output(3))
    add_attention_scores(b, call, c, variant);
  return good;
}

void add_attention_join(launch_builder& b, const gpu_call& call, const attention_call& c, const std::string& variant,
                        const launch_binding& partial, int64_t splits) {
  b.next_step();
  const operand& y = call.outputs[0];
  launch& join = b.add("attention_join." + variant, flat_groups(y.size(), join_group, call.gpu), {partial, b.out(0)});
  join.constants = {c.skips ? 1u : 0u};
  join.params = words_of(shader::attention_join{.count = y.size(),
                                                .splits = splits,
                                                .all_rows = c.batch * c.heads * c.queries,
                                                .value_width = c.value_width,
                                                .rows = c.rows(),
                                                .queries = c.queries,
                                                .kv_heads = c.kv_heads,
                                                .sharing = c.heads / c.kv_heads,
                                                .y_steps = steps_of(c.heads, c.queries, c.value_width, c.y_bshd)});
}

attention_call fused_attention_call(const gpu_call& call) {
  const bool q = is_bshd(call.attrs, "q_layout"), kv = is_bshd(call.attrs, "kv_layout");
  std::array dims{logical(call.inputs[0].dims, q, 0), logical(call.inputs[1].dims, kv, 0),
                  logical(call.inputs[2].dims, kv, 0)};
  const heads_within q_within = choose_heads(call, 0, dims[0]), k_within = choose_heads(call, 1, dims[1]),
                     v_within = choose_heads(call, 2, dims[2]);
  attention_call c = sizes_of(dims[0], dims[1], dims[2]);
  c.q_within = q_within;
  c.k_within = k_within;
  c.v_within = v_within;
  c.q_bshd = q;
  c.kv_bshd = c.new_bshd = kv;
  c.y_bshd = is_bshd(call.attrs, "out_layout");
  c.scale = call.attrs.real("scale", 1);
  c.causal = call.attrs.integer("is_causal", 0) != 0;
  if (call.has_input(past_key_input))
    add_past(call, c);
  c.causal_offset = c.keys - c.queries;
  return c;
}

namespace {

/// Copies of all keys, and scores of past ones, are only for calls that have both in outputs 1 and 2, of the type of
/// all operands.
launch_lists attention_launches(const gpu_call& call) {
  const bool has_past = call.has_input(past_key_input);
  const bool joins = call.has_output(1) || call.has_output(2) || (has_past && call.has_output(3));
  if (joins && (!call.has_output(1) || !call.has_output(2) || call.outputs[1].type != call.inputs[0].type ||
                call.outputs[2].type != call.inputs[0].type))
    return {};
  const bool flat = call.inputs[0].dims.size() == 3;
  const int64_t heads = flat ? call.attrs.integer("q_num_heads") : 0,
                kv = flat ? call.attrs.integer("kv_num_heads") : 0;
  attention_call c = sizes_of(logical(call.inputs[0].dims, false, heads), logical(call.inputs[1].dims, false, kv),
                              logical(call.inputs[2].dims, false, kv));
  if (has_past)
    add_past(call, c);
  if (has_past && (c.past_wide ? joins : !has_past_of(call, call.inputs[0].type)))
    return {};
  c.q_bshd = c.y_bshd = flat;
  c.kv_bshd = flat && !joins;
  c.joined = joins;
  c.new_bshd = flat;
  c.causal_offset = c.past;
  c.limited = call.has_input(6);
  c.softcap = call.attrs.real("softcap", 0.f);
  const double usual = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(1, c.width)));
  c.scale = call.attrs.has("scale") ? call.attrs.real("scale") : static_cast<float>(usual);
  c.causal = call.attrs.integer("is_causal", 0) != 0;
  c.skips = true;
  if (call.has_input(3) && !call.inputs[3].dims.empty() && call.inputs[3].dims.back() != 1)
    c.mask_keys = call.inputs[3].dims.back(); // a shorter row masks the rest
  if (c.mask_keys > c.keys)
    fail(errc::invalid_input, "attn_mask has {} columns, but there are {} keys", c.mask_keys, c.keys);
  return launch_attention(call, c);
}

} // namespace

extern constinit const launch_rows attention_rules = {
    {"", "Attention", attention_launches},
    {"troupe", "Attention", [](const gpu_call& c) { return launch_attention(c, fused_attention_call(c)); }},
};

} // namespace troupe
