#include "launch/product.hpp"

#include "base/checked.hpp"
#include "base/round_up.hpp"
#include "launch/few_rows.hpp"
#include "launch/parameters.hpp"

#include <algorithm>

namespace troupe {
namespace {

bool is_gathered(uint32_t mode) {
  return mode == shader::depth_elements || mode == shader::line_elements;
}

/// Returns the mode in which `width`-element vectors read an operand.
uint32_t mode_of(int64_t lines, int64_t line, int64_t depth, int64_t depths, bool batches_fit, int64_t width,
                 bool line_vectors) {
  const bool fits = batches_fit && depths % width == 0;
  if (depth == 1)
    return fits && line % width == 0 ? shader::depth_vectors : shader::depth_elements;
  const bool whole_lines = batches_fit && line == 1 && lines % width == 0 && depth % width == 0;
  return line_vectors && whole_lines ? shader::line_vectors : shader::line_elements;
}

struct operand_modes {
  uint32_t a, b;

  bool gathers() const { return is_gathered(a) || is_gathered(b); }
};

operand_modes modes_of(const right_operand& r, int64_t width, bool line_vectors) {
  const float_product& p = r.p;
  const bool a_fits = std::all_of(p.batch.begin(), p.batch.end(), [&](auto& x) { return x.a % width == 0; });
  const bool b_fits = std::all_of(p.batch.begin(), p.batch.end(), [&](auto& x) { return x.b % width == 0; });
  return {mode_of(p.m, p.a_line, p.a_depth, p.k, a_fits, width, line_vectors),
          mode_of(p.n, p.b_line, p.b_depth, r.depth, b_fits, width, line_vectors)};
}

/// Returns the columns that one launch computes: all, or as many as a binding of B may hold; 0 if not even few fit.
int64_t columns_of_launch(const right_operand& r, int64_t element, const gpu_features& gpu) {
  if (r.binding.bytes <= gpu.max_binding_bytes)
    return r.p.n;
  const int64_t step = 256 * std::max<int64_t>(1, gpu.binding_alignment / 256);
  if (r.p.b_depth != 1 || r.p.batches() != 1)
    return 0;
  return gpu.max_binding_bytes / (r.p.b_line * element) / step * step;
}

/// What the tiled and the cooperative kernels have in common, whatever the tile.
struct tiled_product {
  tile_family family;
  std::string variant;
  launch_builder begun; // holds the packed right operand
  right_operand right;
  int64_t columns; // of a launch
  operand_modes modes;

  std::string stem() const { return family == tile_family::tiled ? "matmul" : "matmul_cooperative"; }
};

/// The kernel with one tile; nullopt if that is beyond the device's limits.
std::optional<launch_list> with_tile(const gpu_call& call, const float_product& p, const tiled_product& how,
                                     const tiling& t) {
  launch_builder builder = how.begun;
  right_operand r = how.right;
  const int64_t element = bytes_of(call.inputs[p.a].type, 1);
  const int64_t columns = how.columns;
  const bool whole = columns == p.n;
  const bool split = t.splits > 1;
  const product_output rows = output_rows(call.outputs[0], p);
  launch_binding out = builder.out(0);
  if (split)
    out = written(builder.scratch(checked_mul(checked_mul(p.m * p.n, p.batches()), 4 * int64_t{t.splits})));
  const product_epilogue& e = p.epilogue;
  const epilogue_bindings ends = bind_epilogue(builder, p);
  for (int64_t first = 0; first < p.n; first += columns) {
    r.p.n = std::min(columns, p.n - first);
    const launch_binding b =
        whole ? r.binding : part_of(r.binding, first * r.p.b_line * element, r.p.n * r.p.b_line * element);
    const auto groups = product_groups(r.p, t);
    launch& l = builder.add(how.stem() + "." + tile_variant(how.family, how.variant, t), groups,
                            {builder.in(p.a), b, ends.bias, ends.residual, out});
    l.constants = t.constants();
    l.constants.insert(l.constants.end(), {how.modes.a, how.modes.b,
                                           e.flags() | tile_flags(t, groups, p.batches(), call.gpu) |
                                               vector_out(p, rows, product_width(how.family)),
                                           static_cast<uint32_t>(e.act.code)});
    l.params = stack_parameters(r.p, t, rows, first);
  }
  if (split) {
    out.written = false;
    add_split_sum(builder, call, p, t, out);
  }
  return tiled_list(builder, call, t);
}

/// The ways of the tiled or the cooperative kernel, the fastest by the model first; none if the device cannot run it.
launch_lists tiles(const gpu_call& call, const float_product& p, tile_family family, const std::string& variant) {
  const bool matrices = family != tile_family::tiled;
  launch_builder begun(call, fmt::format("matmul{}{}", matrices ? "_cooperative" : "", p.norm ? ".normed" : ""));
  const right_operand right = bind_right(begun, call, p);
  const dtype type = call.inputs[p.a].type;
  const int64_t columns = columns_of_launch(right, bytes_of(type, 1), call.gpu);
  if (columns == 0 && p.n != 0)
    return {};
  const tiled_product how{family, variant, std::move(begun),
                          right,  columns, modes_of(right, product_width(family), true)};
  const product_size size{
      p.m, p.n, p.k, p.batches(), how.modes.gathers(), p.norm.has_value(), tries_slices(type, call)};
  launch_lists lists;
  for (const tiling& t : list_tilings(size, family, columns == p.n, call.gpu, call.ways, call.tiles))
    if (auto list = with_tile(call, p, how, t))
      lists.push_back(std::move(*list));
  return lists;
}

/// Those of the cooperative kernel; none if the device has none for the operands.
launch_lists cooperative_tiles(const gpu_call& call, const float_product& p, const std::string& variant) {
  const auto family = cooperative_family(call.inputs[p.a].type, call.gpu);
  return family ? tiles(call, p, *family, variant) : launch_lists{};
}

/// Whether matrices of groups can multiply by a constant right matrix: all lines begin at whole vectors.
bool fits_group_matrices(const gpu_call& call, const float_product& p) {
  constexpr int64_t vector = 8, fewest_rows = 16;
  return call.gpu.group_matrices && call.inputs[p.a].type == dtype::float16 && call.inputs[p.b].constant &&
         p.batch.empty() && p.a_depth == 1 && p.a_line == p.k && p.k % vector == 0 && p.n % vector == 0 && p.k > 0 &&
         p.n > 0 && p.m >= fewest_rows;
}

/// The kernel by matrices of groups with one tile, which is made for the right matrix's and the output's sizes; nullopt
/// if it does not suit.
std::optional<launch_list> with_group_tile(const gpu_call& call, const float_product& p, const tiling& t) {
  const product_output rows = output_rows(call.outputs[0], p);
  launch_builder builder(call, "matmul.matrices");
  const right_operand r = bind_right(builder, call, p);
  if (r.p.b_depth != 1 || r.p.b_line != p.k || r.binding.bytes > call.gpu.max_binding_bytes)
    return std::nullopt;
  const product_epilogue& e = p.epilogue;
  const epilogue_bindings ends = bind_epilogue(builder, p);
  launch& l = builder.add(fmt::format("matmul_matrices.f16_{}x{}x{}", t.m, t.n, t.depth), product_groups(p, t),
                          {builder.in(p.a), r.binding, ends.bias, ends.residual, builder.out(0)});
  const bool whole = p.m >= t.m && p.n % t.n == 0 && p.k % t.depth == 0;
  l.constants = {e.flags() | (whole ? shader::product_whole_tiles : 0),
                 static_cast<uint32_t>(e.act.code),
                 word(p.n),
                 word(p.k),
                 word(rows.row),
                 word(rows.first),
                 column_band({p.m, p.n, p.k})};
  l.params = stack_parameters(r.p, t, rows, 0);
  return tiled_list(builder, call, t);
}

/// Its ways, the fastest by the model first; none if it does not suit.
launch_lists group_tiles(const gpu_call& call, const float_product& p) {
  launch_lists lists;
  if (!fits_group_matrices(call, p) || !vector_out(p, output_rows(call.outputs[0], p), 8))
    return lists;
  for (const tiling& t : list_tilings({p.m, p.n, p.k}, tile_family::matrices, false, call.gpu, call.ways))
    if (auto list = with_group_tile(call, p, t))
      lists.push_back(std::move(*list));
  return lists;
}

/// Columns that a team of `gemv.comp` computes at once, and its size.
struct team {
  uint32_t lanes, columns;
};

/// Enough teams that the device is full, then two columns whose loads overlap; four are slower.
team team_of(const float_product& p, const gpu_features& gpu) {
  constexpr int64_t threads = 256;
  const int64_t wanted = int64_t{gpu.units} * 4; // groups
  if (p.n * 32 / 2 >= wanted * threads)
    return {32, 2};
  uint32_t lanes = 32;
  while (lanes < threads && p.n * lanes < wanted * threads / 2 && p.k >= int64_t{lanes} * 2 * packed_column_padding)
    lanes *= 2;
  return {lanes, 1};
}

/// The kernel for few rows, which reads a column's neighbouring depths; nullopt if it does not suit.
std::optional<launch_list> few_rows(const gpu_call& call, const float_product& p, const std::string& variant) {
  constexpr int64_t most_rows = 4;
  if (p.m > most_rows || p.batches() != 1)
    return std::nullopt;
  launch_builder builder(call, "gemv");
  right_operand r = bind_right(builder, call, p);
  const int64_t element = bytes_of(call.inputs[p.a].type, 1);
  const int64_t columns = columns_of_launch(r, element, call.gpu);
  if (r.p.b_depth != 1 || (columns == 0 && p.n != 0) || call.gpu.max_group_size < 256)
    return std::nullopt;
  const operand_modes modes = modes_of(r, element == 2 ? 8 : 4, false);
  const team t = team_of(p, call.gpu);
  const product_epilogue& e = p.epilogue;
  const epilogue_bindings ends = bind_epilogue(builder, p);
  for (int64_t first = 0; first < p.n; first += columns) {
    r.p.n = std::min(columns, p.n - first);
    launch_binding b = r.binding;
    if (columns != p.n)
      b = part_of(b, first * r.p.b_line * element, r.p.n * r.p.b_line * element);
    launch& l = builder.add("gemv." + variant, flat_groups(r.p.n, 256 / t.lanes * t.columns, call.gpu),
                            {builder.in(p.a), b, ends.bias, ends.residual, builder.out(0)});
    l.constants = {256, t.lanes, t.columns, word(p.m), p.m > 2 ? 2u : 4u, 0};
    l.constants.insert(l.constants.end(), {modes.a, modes.b, e.flags(), static_cast<uint32_t>(e.act.code)});
    l.params = stack_parameters(r.p, {.splits = 1, .split_depth = word(p.k)}, output_rows(call.outputs[0], p), first);
  }
  return builder.finish();
}

/// Whether what matrices of groups gain is worth seconds of the driver's compiler.
bool worth_a_kernel(const launch_lists& matrices, const launch_lists& others) {
  constexpr double gain = 0.85;
  return !matrices.empty() && (others.empty() || matrices[0].time < gain * others[0].time);
}

bool too_large(const gpu_call& call, const float_product& p) {
  if (p.batch.size() > std::size(shader::matmul{}.batch_axes))
    return true;
  for (size_t i : {p.a, p.b})
    if (call.inputs[i].size() >= index_limit)
      return true;
  return call.outputs[0].stored_size() >= index_limit;
}

} // namespace

int64_t float_product::batches() const {
  int64_t count = 1;
  for (const batch_axis& axis : batch)
    count *= axis.size;
  return count;
}

int64_t packed_pitch(int64_t depth) {
  return round_up(depth, packed_column_padding);
}

right_operand bind_right(launch_builder& builder, const gpu_call& call, float_product p) {
  if (p.made_b) {
    p.b_line = packed_pitch(p.k);
    p.b_depth = 1;
    const int64_t pitch = p.b_line;
    return {builder.made(p.made_b), std::move(p), pitch};
  }
  const operand& b = call.inputs[p.b];
  const bool by_columns = p.b_depth == 1;
  const int64_t matrix = p.n * p.k; // not what B has if dims do not fit: such a call is refused when it is bound
  if (!b.constant || (by_columns && p.k % packed_column_padding == 0) || matrix == 0 || b.size() % matrix != 0)
    return {builder.in(p.b), p, p.k};
  const int64_t pitch = packed_pitch(p.k);
  const int64_t matrices = b.size() / matrix;
  const launch_binding packed = by_columns
                                    ? builder.packed(p.b, {matrices, p.n, p.k}, {0, 1, 2}, {matrices, p.n, pitch})
                                    : builder.packed(p.b, {matrices, p.k, p.n}, {0, 2, 1}, {matrices, p.n, pitch});
  for (batch_axis& axis : p.batch)
    axis.b = axis.b / matrix * p.n * pitch;
  p.b_line = pitch;
  p.b_depth = 1;
  return {packed, std::move(p), pitch};
}

std::optional<std::string> product_variant(dtype type, const gpu_features& gpu) {
  return type == dtype::float32 || type == dtype::float16 ? arithmetic_variant(type, gpu) : std::nullopt;
}

std::optional<tile_family> cooperative_family(dtype type, const gpu_features& gpu) {
  if (!gpu.float16 || !gpu.cooperative_matrix || gpu.subgroup_size != 32)
    return std::nullopt;
  return type == dtype::float32 ? tile_family::cooperative_floats : tile_family::cooperative;
}

bool tries_slices(dtype type, const gpu_call& call) {
  constexpr uint32_t fewest_units = 32;
  return type == dtype::float32 && (call.ways != way_range::usual || call.gpu.units >= fewest_units);
}

std::array<uint32_t, 3> product_groups(const float_product& p, const tiling& t) {
  return {word((p.m + t.m - 1) / t.m), word((p.n + t.n - 1) / t.n), word(p.batches() * t.splits)};
}

void add_by_speed(launch_lists& lists, dtype operands, const gpu_features& gpu, launch_lists matrices,
                  launch_lists scalars) {
  constexpr double worth =
      0.9; // of the time: the driver compiles pieces longer, and their scales cost more than the fitted times say
  if (operands == dtype::float32 && !matrices.empty() && !scalars.empty() &&
      (!gpu.strong_matrices || worth * scalars[0].time < matrices[0].time))
    std::swap(matrices, scalars);
  add_lists(lists, std::move(matrices));
  add_lists(lists, std::move(scalars));
}

std::string tile_variant(tile_family family, const std::string& variant, const tiling& t) {
  if (family == tile_family::tiled)
    return t.slices() > 1 ? variant + "_sliced" : variant;
  return variant + "_" + std::to_string(t.rows / 16) + "x" + std::to_string(t.columns / 16);
}

product_output output_rows(const operand& out, const float_product& p) {
  return {.row = out.is_part() ? out.part.pitch : p.n, .first = out.part.first};
}

bool can_write(const operand& out, int64_t rows, const product_epilogue& e) {
  return !out.is_part() || (out.part.size == rows * out.part.pitch && e.residual == no_input);
}

uint32_t vector_out(const float_product& p, const product_output& out, int64_t width) {
  const bool fits = p.n % width == 0 && out.row % width == 0 && out.first % width == 0;
  return fits ? shader::product_vector_out : 0;
}

shader::product_parameters product_parameters_of(const float_product& p, const tiling& t, const product_output& out,
                                                 int64_t first_column) {
  const product_epilogue& e = p.epilogue;
  return {.m = p.m,
          .n = p.n,
          .k = p.k,
          .split_depth = t.split_depth,
          .splits = t.splits,
          .b_column = p.b_line,
          .b_depth = p.b_depth,
          .out_row = out.row,
          .out_column = out.column,
          .bias_row = e.bias_row,
          .bias_column = e.bias_column,
          .first_column = first_column,
          .alpha = e.alpha,
          .beta = e.beta,
          .act_alpha = e.act.alpha,
          .act_beta = e.act.beta,
          .a_line = p.a_line,
          .a_depth = p.a_depth,
          .batches = p.batches(),
          .out_first = out.first};
}

std::vector<uint32_t> stack_parameters(const float_product& p, const tiling& t, const product_output& out,
                                       int64_t first_column) {
  shader::matmul block{.product = product_parameters_of(p, t, out, first_column),
                       .out_batch = p.m * out.row,
                       .batch_rank = p.batch.size()};
  for (size_t i = 0; i < p.batch.size(); ++i)
    block.batch_axes[i] = {p.batch[i].size, p.batch[i].a, p.batch[i].b};
  return words_of(block);
}

std::optional<launch_list> tiled_list(launch_builder& builder, const gpu_call& call, const tiling& t) {
  std::optional<launch_list> list = builder.finish();
  if (!list)
    return list;
  list->time = t.time;
  if (call.ways != way_range::usual)
    list->tile = t.name();
  return list;
}

launch_lists product_launches(const gpu_call& call, const float_product& p) {
  const auto variant = product_variant(call.inputs[p.a].type, call.gpu);
  if (!variant || too_large(call, p) || !can_write(call.outputs[0], p.m * p.batches(), p.epilogue))
    return {};
  launch_lists lists;
  if (auto list = few_rows_product(call, p))
    lists.push_back(std::move(*list));
  if (auto list = few_rows(call, p, *variant))
    lists.push_back(std::move(*list));
  launch_lists cooperative = cooperative_tiles(call, p, *variant);
  launch_lists matrices = group_tiles(call, p);
  if (worth_a_kernel(matrices, cooperative))
    std::swap(matrices, cooperative);
  add_lists(cooperative, std::move(matrices));
  add_by_speed(lists, call.inputs[p.a].type, call.gpu, std::move(cooperative),
               tiles(call, p, tile_family::tiled, *variant));
  return lists;
}

launch_lists normed_product_launches(const gpu_call& call, float_product p, norm_of_rows norm) {
  const auto variant = product_variant(call.inputs[p.a].type, call.gpu);
  if (!variant || too_large(call, p))
    return {};
  const row_extent rows{p.m * p.batches(), p.n, 1};
  launch_lists lists;
  for (const row_team& team : row_teams(rows, rows.width(), call.gpu)) {
    if (int64_t{team.lanes} * team.items * team.width < p.n || (call.ways != way_range::usual && !lists.empty()))
      continue;
    norm.team = team;
    p.norm = norm;
    add_by_speed(lists, call.inputs[p.a].type, call.gpu, cooperative_tiles(call, p, *variant),
                 tiles(call, p, tile_family::tiled, *variant));
  }
  return lists;
}

} // namespace troupe
