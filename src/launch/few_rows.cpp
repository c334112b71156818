#include "launch/few_rows.hpp"

#include "base/round_up.hpp"
#include "launch/row_team.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>

namespace troupe {
namespace {

constexpr uint32_t most_threads = 256; // of a group

/// How columns are dealt out to teams of invocations.
struct column_teams {
  uint32_t threads = most_threads;
  uint32_t lanes;   // of a team
  uint32_t columns; // of a slot: a team computes them at once
  uint32_t unroll;  // vectors or chunks of a column that an invocation loads at once

  int64_t teams() const { return threads / lanes; }
};

/// A kernel, and how its columns are dealt out.
struct few_rows_kernel {
  std::string stem, name;
  bool plain = false; // without subgroup arithmetic
  size_t most_parts;
  column_teams (*teams)(const few_rows_call& c, std::span<const few_rows_part> parts, const few_rows_kernel& k);
  /// Elements that a row is padded to in the group's memory; 0 if rows are not kept.
  int64_t row = 0;
  /// Bytes that are kept besides.
  int64_t more_shared = 0;
};

uint32_t zero_mode(const few_rows_call& c, const few_rows_part& p) {
  if (p.zeros == no_input)
    return shader::zeros_absent;
  return c.call.inputs[p.zeros].type == dtype::uint8 ? shader::zeros_packed : shader::zeros_whole;
}

int64_t columns_of(std::span<const few_rows_part> parts) {
  int64_t n = 0;
  for (const few_rows_part& p : parts)
    n += p.n;
  return n;
}

/// Whether a team may have two columns: pairs (i, i + pairs) of a head are dealt out two at a time then.
bool may_have_two(const few_rows_call& c) {
  return !c.rotary || c.rotary->how.interleaved ||
         (c.rotary->how.params.pairs % 2 == 0 && c.rotary->how.params.width % 4 == 0);
}

/// The most lanes of a team: rotated columns need an even number of teams.
uint32_t most_lanes(const few_rows_call& c) {
  return c.rotary ? most_threads / 2 : most_threads;
}

/// The slots of some parts, by part: where each begins, and all at the end. Their numbers are even if some are rotated,
/// whose neighbours are pairs.
std::vector<int64_t> slots_of(const few_rows_call& c, std::span<const few_rows_part> parts, const column_teams& t) {
  if (c.gated)
    return {0, 0, ceil_div(parts[0].n, t.columns / 2)};
  std::vector<int64_t> first{0};
  for (const few_rows_part& p : parts)
    first.push_back(first.back() + round_up(ceil_div(p.n, t.columns), c.rotary ? 2 : 1));
  return first;
}

uint32_t fewest_lanes(const few_rows_call& c, bool plain) {
  return std::max<uint32_t>(32, plain ? 0 : c.call.gpu.subgroup_size);
}

/// Threads of a group that computes float columns of one row. With 128 an H200 has a step of gpt2 1 to 2 % sooner than
/// with 256. Teams that are rotated are pairs; where each group keeps the row, two teams at least share it.
uint32_t threads_of_one_row(const few_rows_call& c, uint32_t lanes) {
  const bool keeps_row = c.norm != shader::rows_as_they_are;
  return std::clamp(lanes * (c.rotary || keeps_row ? 2 : 1), most_threads / 2, most_threads);
}

/// Enough teams that the device is full, then two columns of floats whose loads overlap; four are slower.
column_teams element_teams(const few_rows_call& c, std::span<const few_rows_part> parts, const few_rows_kernel& k) {
  const int64_t n = columns_of(parts), wanted = int64_t{c.call.gpu.units} * 4 * most_threads; // invocations
  const int64_t enough = c.packed ? wanted : wanted / 2;
  column_teams t{.lanes = fewest_lanes(c, k.plain), .columns = 1, .unroll = 4};
  if (c.gated || (!c.packed && may_have_two(c) && n * t.lanes / 2 >= wanted))
    t.columns = 2;
  while (t.lanes < most_lanes(c) && n * t.lanes / t.columns < enough &&
         c.depth >= int64_t{t.lanes} * 2 * packed_column_padding)
    t.lanes *= 2;
  if (c.rows * t.columns > 2)
    t.unroll = 2;
  if (!c.packed && c.rows == 1) {
    // Of 11 vectors of a column that an invocation has (llama_1b's 5,632 depths) two at a time are 2 % of a step faster
    // than four; of 8 not.
    constexpr int64_t many = 8;
    t.threads = threads_of_one_row(c, t.lanes);
    if (bytes_of(c.call.inputs[0].type, c.depth) / 16 > many * t.lanes)
      t.unroll = 2;
  }
  return t;
}

/// Vectors of codes that a column has.
int64_t vectors_of(const nbits_shape& s) {
  return s.blocks * s.block_bytes() / 16;
}

/// Lanes that have at most two vectors of a column, and two columns, which share what a team reads of the row, if that
/// leaves the device enough invocations. A lane asks for all its vectors at once, but where teams alone fill the
/// device: there more groups at once are worth more. Each group makes the row ready for itself, so it has four teams or
/// more. On an H200, whose step of llama_1b with 4-bit weights has 0.59 ms by these rules, four vectors a lane take 2 %
/// more, two columns of few teams 1 %, two vectors at once of many teams 4 %, groups of 128 threads 5 %.
column_teams vector_teams(const few_rows_call& c, std::span<const few_rows_part> parts, const few_rows_kernel&) {
  constexpr int64_t most = 2; // vectors of a column that a lane has, if that makes no group too large
  constexpr uint32_t group_teams = 4;
  const gpu_features& gpu = c.call.gpu;
  const int64_t vectors = vectors_of(*c.packed), few = int64_t{gpu.units} * 512; // invocations
  column_teams t{.lanes = gpu.subgroup_size, .columns = 1};
  const uint32_t largest = gpu.max_group_size < 2 * most_threads ? most_threads : 2 * most_threads;
  while (t.lanes * group_teams < largest && vectors > t.lanes * most)
    t.lanes *= 2;
  const int64_t invocations = columns_of(parts) * t.lanes; // of one column each
  if (c.gated || (may_have_two(c) && invocations / 2 >= few))
    t.columns = 2;
  const int64_t each = ceil_div(vectors, t.lanes);
  t.unroll = invocations / t.columns >= 2 * few ? 1 : static_cast<uint32_t>(ceil_div(each, ceil_div(each, 2 * most)));
  t.threads = std::clamp(t.lanes * group_teams, most_threads, largest);
  return t;
}

/// Bytes of a group's shared memory.
int64_t shared_bytes(const few_rows_call& c, const column_teams& t, const few_rows_kernel& k) {
  const int64_t sums = c.rows * t.columns * t.threads * 4 / (k.plain ? 1 : 2);
  const int64_t rows =
      c.norm == shader::rows_as_they_are && k.row == 0 ? 0 : c.rows * std::max(k.row, (c.depth + 7) / 8 * 8);
  return sums + t.threads * 4 + std::max<int64_t>(16, bytes_of(c.call.inputs[0].type, rows)) + k.more_shared;
}

shader::projections parameters_of(const few_rows_call& c, std::span<const few_rows_part> parts,
                                  std::span<const int64_t> slots) {
  shader::projections block{.epsilon = c.epsilon};
  if (c.packed) {
    const nbits_shape& s = *c.packed;
    block.block_shift = std::countr_zero(static_cast<uint64_t>(s.block_size));
    block.blocks = s.blocks;
    block.column_words = s.blocks * s.block_bytes() / 4;
    block.zero_bytes = s.zero_bytes();
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    block.parts[i] = {slots[i], parts[i].n};
    block.numbers[i] = {parts[i].act.alpha, parts[i].act.beta};
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
                   (c.gated ? shader::projections_gated : 0) | (c.wide ? shader::projections_wide : 0) |
                   (c.norm_shift != no_input ? shader::projections_shift : 0);
  for (size_t i = 0; i < parts.size(); ++i)
    flags |= (parts[i].bias != no_input ? 1u << i : 0) | (parts[i].rotated ? shader::projections_rotated << i : 0);
  if (c.rotary)
    flags |= (c.rotary->how.interleaved ? shader::projections_interleaved : 0) |
             (c.rotary->how.positions ? shader::projections_positions : 0);
  return flags;
}

std::vector<uint32_t> constants_of(const few_rows_call& c, std::span<const few_rows_part> parts,
                                   const column_teams& t) {
  std::vector<uint32_t> all{t.threads,         t.lanes, t.columns,     word(c.rows),
                            t.unroll,          c.norm,  word(c.depth), word(static_cast<int64_t>(parts.size())),
                            flags_of(c, parts)};
  for (size_t i = 0; i < shader::projections_most_parts; ++i)
    all.push_back(i < parts.size() ? static_cast<uint32_t>(parts[i].act.code) : 0);
  if (c.packed) // of which the last one only the kernel of vectors has
    all.insert(all.end(), {word(c.packed->bits), zero_mode(c, parts[0]), word(c.packed->block_size)});
  return all;
}

/// Words of a launch that stay as they are while its constants do; tables of angles may grow from step to step.
constexpr int64_t words_before_rotary = offsetof(shader::projections, pairs) / 4;

/// Adds the launch of some parts; false if the kernel does not suit.
bool add_launch(launch_builder& b, const few_rows_call& c, std::span<const few_rows_part> parts,
                const few_rows_kernel& k, const std::string& shader) {
  const column_teams t = k.teams(c, parts, k);
  auto bindings = bindings_of(b, c, parts, k.most_parts);
  if (!bindings || shared_bytes(c, t, k) > c.call.gpu.shared_bytes)
    return false;
  const std::vector<int64_t> slots = slots_of(c, parts, t);
  launch& l = b.add(shader, flat_groups(slots.back(), t.teams(), c.call.gpu), std::move(*bindings));
  l.constants = constants_of(c, parts, t);
  l.params = words_of(parameters_of(c, parts, slots));
  l.fixed_words = words_before_rotary;
  l.fixed_groups = true;
  return true;
}

std::optional<launch_list> list_of(const few_rows_call& c, const few_rows_kernel& k) {
  const auto shader = row_shader(k.stem, c.call.inputs[0].type, k.plain, c.call.gpu);
  if (!shader)
    return std::nullopt;
  launch_builder b(c.call, k.name);
  for (size_t first = 0; first < c.parts.size(); first += k.most_parts) {
    const auto parts = std::span(c.parts).subspan(first, std::min(k.most_parts, c.parts.size() - first));
    if (!add_launch(b, c, parts, k, *shader))
      return std::nullopt;
  }
  return b.finish();
}

/// Whether the kernels can run the call at all.
bool suits(const few_rows_call& c) {
  const gpu_features& gpu = c.call.gpu;
  const auto differs = [&](const few_rows_part& p) { return zero_mode(c, p) != zero_mode(c, c.parts[0]); };
  const auto is_empty = [](const few_rows_part& p) { return p.n < 1; };
  return c.rows >= 1 && c.rows <= most_few_rows && c.depth >= 1 && gpu.max_group_size >= most_threads &&
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

/// Whether the kernel of vectors of codes can run a call: of one row, since what is read of more outweighs the codes.
/// It multiplies a row of float16 as integers (shaders/fixed_rows.glsl).
bool has_code_vectors(const few_rows_call& c) {
  constexpr uint32_t piece_lanes = 4;
  const gpu_features& gpu = c.call.gpu;
  const bool fixed = gpu.integer_dot && gpu.subgroup_shuffle && gpu.subgroup_size >= piece_lanes;
  return c.packed && c.rows == 1 && c.packed->blocks * c.packed->block_bytes() % 16 == 0 &&
         (fixed || c.call.inputs[0].type != dtype::float16);
}

/// What it keeps of the row: its elements, and 8 bytes for each block, or vector of codes where that is less.
few_rows_kernel code_vectors(const few_rows_call& c) {
  const nbits_shape& s = *c.packed;
  const int64_t pieces = std::max(s.blocks, vectors_of(s));
  return {.stem = "nbits_vectors",
          .name = c.name + ".vectors",
          .most_parts = shader::projections_most_parts,
          .teams = vector_teams,
          .row = s.blocks * s.block_size,
          .more_shared = c.call.inputs[0].type == dtype::float16 ? pieces * 8 : 0};
}

/// The kernels that a device may have for a call, best first.
std::vector<few_rows_kernel> kernels_of(const few_rows_call& c) {
  const uint32_t subgroup = c.call.gpu.subgroup_size;
  const bool subgroups =
      c.call.gpu.subgroup_arithmetic && subgroup >= 2 && subgroup <= most_threads / 2 && std::has_single_bit(subgroup);
  const std::string stem = c.packed ? "matmul_nbits" : "projections";
  const size_t most = c.packed ? shader::projections_most_packed : shader::projections_most_parts;
  std::vector<few_rows_kernel> all;
  if (subgroups && has_code_vectors(c))
    all.push_back(code_vectors(c));
  if (subgroups)
    all.push_back({.stem = stem, .name = c.name, .most_parts = most, .teams = element_teams});
  all.push_back({.stem = stem, .name = c.name + ".plain", .plain = true, .most_parts = most, .teams = element_teams});
  return all;
}

} // namespace

launch_lists few_rows_launches(const few_rows_call& c) {
  launch_lists lists;
  if (suits(c))
    for (const few_rows_kernel& k : kernels_of(c))
      if (auto list = list_of(c, k))
        lists.push_back(std::move(*list));
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
