#include "launch/few_rows.hpp"

#include "launch/row_team.hpp"

#include <algorithm>
#include <bit>

namespace troupe {
namespace {

constexpr int64_t threads = 256;

/// How columns are dealt out.
struct column_teams {
  uint32_t lanes, columns; // invocations of a team, columns that it computes at once
};

/// Slots that the columns of a part take; an even number if some are rotated, whose neighbours are pairs.
int64_t slots_of(const few_rows_call& c, const few_rows_part& p, const column_teams& t) {
  const int64_t slots = (p.n + t.columns - 1) / t.columns;
  return c.rotary ? slots + slots % 2 : slots;
}

/// Whether a team may have two columns: pairs (i, i + pairs) of a head are dealt out two at a time then.
bool may_have_two(const few_rows_call& c) {
  const bool by_two = !c.rotary || c.rotary->how.interleaved ||
                      (c.rotary->how.params.pairs % 2 == 0 && c.rotary->how.params.width % 4 == 0);
  return !c.packed && !c.gated && by_two;
}

uint32_t zero_mode(const few_rows_call& c, const few_rows_part& p) {
  if (p.zeros == no_input)
    return shader::zeros_absent;
  return c.call.inputs[p.zeros].type == dtype::uint8 ? shader::zeros_packed : shader::zeros_whole;
}

/// Enough teams that the device is full, then two columns of floats whose loads overlap; four are slower.
column_teams teams_of(const few_rows_call& c, std::span<const few_rows_part> parts, bool plain) {
  int64_t n = 0;
  for (const few_rows_part& p : parts)
    n += p.n;
  const int64_t wanted = int64_t{c.call.gpu.units} * 4 * threads; // invocations
  const int64_t enough = c.packed ? wanted : wanted / 2;
  auto lanes = static_cast<uint32_t>(std::max<int64_t>(32, plain ? 0 : c.call.gpu.subgroup_size));
  if (may_have_two(c) && n * lanes / 2 >= wanted)
    return {lanes, 2};
  const uint32_t most = c.gated || c.rotary ? threads / 2 : threads;
  while (lanes < most && n * lanes < enough && c.depth >= int64_t{lanes} * 2 * packed_column_padding)
    lanes *= 2;
  return {lanes, 1};
}

/// Bytes of a group's shared memory.
int64_t shared_bytes(const few_rows_call& c, const column_teams& t, bool plain) {
  const int64_t sums = c.rows * t.columns * threads * 4 / (plain ? 1 : 2);
  const int64_t row = (c.depth + 7) / 8 * 8 * bytes_of(c.call.inputs[0].type, 1);
  return sums + threads * 4 + (c.norm == shader::rows_as_they_are ? 16 : c.rows * row);
}

shader::projections parameters_of(const few_rows_call& c, std::span<const few_rows_part> parts, const column_teams& t) {
  shader::projections block{.epsilon = c.epsilon};
  if (c.packed) {
    const nbits_shape& s = *c.packed;
    block.block_shift = std::countr_zero(static_cast<uint64_t>(s.block_size));
    block.blocks = s.blocks;
    block.column_words = s.blocks * s.block_bytes() / 4;
    block.zero_bytes = s.zero_bytes();
  }
  int64_t first = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    block.parts[i] = {first, parts[i].n};
    block.numbers[i] = {parts[i].act.alpha, parts[i].act.beta};
    first += slots_of(c, parts[i], t);
  }
  if (c.rotary) {
    const shader::rotary& r = c.rotary->how.params;
    block.pairs = r.pairs;
    block.width = r.width;
    block.sequence = r.middle;
    block.second = r.second;
    block.cos_batch = r.cos_batch;
    block.sin_batch = r.sin_batch;
    block.table_row = r.table_row;
    block.table_rows = r.table_rows;
  }
  return block;
}

/// Returns the bindings of a kernel that has room for `most` parts; nullopt if weights are not as it wants them.
std::optional<std::vector<launch_binding>> bindings_of(launch_builder& b, const few_rows_call& c,
                                                       std::span<const few_rows_part> parts, size_t most) {
  const auto input = [&](size_t i) { return b.in(i == no_input ? 0 : i); };
  std::vector<launch_binding> all{b.in(0), input(c.norm_scale), input(c.norm_shift), input(c.residual)};
  for (size_t i = 0; i < most; ++i) {
    const few_rows_part& p = parts[std::min(i, parts.size() - 1)];
    if (c.packed) {
      all.insert(all.end(), {b.in(p.weights), b.in(p.scales), input(p.zeros)});
    } else if (i < parts.size()) {
      const right_operand r = bind_right(b, c.call,
                                         {.m = c.rows,
                                          .n = p.n,
                                          .k = c.depth,
                                          .b = p.weights,
                                          .b_line = p.transposed ? c.depth : 1,
                                          .b_depth = p.transposed ? 1 : p.n});
      if (r.p.b_depth != 1 || r.p.b_line % packed_column_padding != 0)
        return std::nullopt;
      all.push_back(r.binding);
    } else {
      all.push_back(b.in(0));
    }
    all.insert(all.end(), {input(p.bias), b.out(p.out)});
  }
  const few_rows_rotary angles = c.rotary.value_or(few_rows_rotary{});
  all.insert(all.end(), {input(angles.cosines), input(angles.sines), input(angles.positions)});
  return all;
}

uint32_t flags_of(const few_rows_call& c, std::span<const few_rows_part> parts) {
  uint32_t flags = (c.residual != no_input ? shader::projections_residual : 0) |
                   (c.gated ? shader::projections_gated : 0) |
                   (c.norm_shift != no_input ? shader::projections_shift : 0);
  for (size_t i = 0; i < parts.size(); ++i)
    flags |= (parts[i].bias != no_input ? 1u << i : 0) | (parts[i].rotated ? shader::projections_rotated << i : 0);
  if (c.rotary)
    flags |= (c.rotary->how.interleaved ? shader::projections_interleaved : 0) |
             (c.rotary->how.positions ? shader::projections_positions : 0);
  return flags;
}

/// Adds the launch of some parts; false if the kernel does not suit.
bool add_launch(launch_builder& b, const few_rows_call& c, std::span<const few_rows_part> parts,
                const std::string& shader, bool plain) {
  const column_teams t = teams_of(c, parts, plain);
  const size_t most = c.packed ? shader::projections_most_packed : shader::projections_most_parts;
  auto bindings = bindings_of(b, c, parts, most);
  if (!bindings || shared_bytes(c, t, plain) > c.call.gpu.shared_bytes)
    return false;
  std::array<uint32_t, shader::projections_most_parts> ends{};
  int64_t slots = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    ends[i] = static_cast<uint32_t>(parts[i].act.code);
    slots += slots_of(c, parts[i], t);
  }
  launch& l = b.add(shader, flat_groups(slots, threads / t.lanes, c.call.gpu), std::move(*bindings));
  l.constants = {threads,
                 t.lanes,
                 t.columns,
                 word(c.rows),
                 c.rows * t.columns > 2 ? 2u : 4u,
                 c.norm,
                 word(c.depth),
                 word(static_cast<int64_t>(parts.size())),
                 flags_of(c, parts)};
  l.constants.insert(l.constants.end(), ends.begin(), ends.end());
  if (c.packed)
    l.constants.insert(l.constants.end(), {word(c.packed->bits), zero_mode(c, parts[0])});
  l.params = words_of(parameters_of(c, parts, t));
  return true;
}

std::optional<launch_list> list_of(const few_rows_call& c, bool plain) {
  const auto shader = row_shader(c.packed ? "matmul_nbits" : "projections", c.call.inputs[0].type, plain, c.call.gpu);
  if (!shader)
    return std::nullopt;
  launch_builder b(c.call, plain ? c.name + ".plain" : c.name);
  const size_t most = c.packed ? shader::projections_most_packed : shader::projections_most_parts;
  for (size_t first = 0; first < c.parts.size(); first += most) {
    const auto parts = std::span(c.parts).subspan(first, std::min(most, c.parts.size() - first));
    if (!add_launch(b, c, parts, *shader, plain))
      return std::nullopt;
  }
  return b.finish();
}

/// Whether the kernels can run the call at all.
bool suits(const few_rows_call& c) {
  const gpu_features& gpu = c.call.gpu;
  const auto differs = [&](const few_rows_part& p) { return zero_mode(c, p) != zero_mode(c, c.parts[0]); };
  const auto is_empty = [](const few_rows_part& p) { return p.n < 1; };
  return c.rows >= 1 && c.rows <= most_few_rows && c.depth >= 1 && gpu.max_group_size >= threads &&
         std::none_of(c.parts.begin(), c.parts.end(), is_empty) &&
         (!c.packed || (gpu.int8 && std::none_of(c.parts.begin(), c.parts.end(), differs)));
}

/// Whether the kernel of projections computes a product: rows next to each other by one matrix, the bias a row.
bool is_projection(const gpu_call& call, const float_product& p) {
  const product_epilogue& e = p.epilogue;
  const bool whole = p.a == 0 && p.a_line == p.k && p.a_depth == 1 && p.batches() == 1 && !call.outputs[0].is_part();
  const bool columns = (p.b_depth == 1 && p.b_line == p.k) || (p.b_line == 1 && p.b_depth == p.n);
  const bool row_bias = e.bias == no_input || (e.bias_row == 0 && e.bias_column == 1);
  return whole && columns && row_bias && !p.made_b && e.alpha == 1 && e.beta == 1 &&
         call.inputs[p.b].bytes() <= call.gpu.max_binding_bytes / 2; // with what packing adds
}

} // namespace

launch_lists few_rows_launches(const few_rows_call& c) {
  if (!suits(c))
    return {};
  launch_lists lists;
  for (const bool plain : {false, true}) {
    const uint32_t subgroup = c.call.gpu.subgroup_size;
    if (!plain &&
        (!c.call.gpu.subgroup_arithmetic || subgroup < 2 || subgroup > threads / 2 || !std::has_single_bit(subgroup)))
      continue;
    if (auto list = list_of(c, plain))
      lists.push_back(std::move(*list));
  }
  return lists;
}

std::optional<launch_list> few_rows_product(const gpu_call& call, const float_product& p) {
  if (!is_projection(call, p))
    return std::nullopt;
  const product_epilogue& e = p.epilogue;
  few_rows_call c{.call = call, .name = "projections", .rows = p.m, .depth = p.k, .residual = e.residual};
  c.parts.push_back({.weights = p.b, .bias = e.bias, .n = p.n, .transposed = p.b_depth == 1, .act = e.act});
  launch_lists lists = few_rows_launches(c);
  if (lists.empty() || lists[0].name != c.name)
    return std::nullopt;
  return std::move(lists[0]);
}

} // namespace troupe
