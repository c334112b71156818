// Attention of many queries: a group computes a block of rows of the result, and walks over the keys in tiles that it
// holds in shared memory (shaders/attention_tiled.comp; shaders/attention.comp for what does not suit its blocks of
// registers). Heads that share keys are rows of one matrix. If one block of rows has many keys they are split over
// groups (shaders/attention_join.comp).
#include "base/round_up.hpp"
#include "launch/attention.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// Vectors of a row in shared memory, as the shaders pad them.
uint32_t key_vectors(const attention_call& c) {
  return std::max(4u, word((c.width + 15) / 16 * 4));
}

uint32_t value_vectors(const attention_call& c) {
  return std::max(1u, word((c.value_width + 3) / 4));
}

/// A kernel, its tile, and its constants before the flags.
struct tile_kernel {
  std::string name, stem;
  uint32_t rows, keys; // a group computes and holds at a time
  std::vector<uint32_t> constants;
};

/// A group of attention.comp.
struct plain_tile {
  uint32_t rows, keys;
  bool apart; // K and V are beside each other
};

int64_t shared_bytes(const attention_call& c, const plain_tile& t) {
  const int64_t keys = t.keys * (int64_t{key_vectors(c)} + 1), values = int64_t{t.keys} * value_vectors(c);
  const int64_t tile = t.apart ? keys + values : std::max(keys, values);
  return 16 * (tile + t.rows * (int64_t{key_vectors(c)} + t.keys / 4 + 1 + 4));
}

/// Many rows share what is read of K and V, few rows keep many groups busy.
std::optional<tile_kernel> plain_kernel(const attention_call& c, const gpu_features& gpu) {
  const int64_t blocks32 = c.batch * c.kv_heads * ((c.rows() + 31) / 32);
  uint32_t rows = c.rows() <= 8 ? 8 : blocks32 >= 2 * int64_t{gpu.units} ? 32 : 16;
  const uint32_t most_keys = c.keys <= 16 ? 16 : c.keys <= 32 ? 32 : 64;
  for (; rows >= 8; rows /= 2)
    for (const auto& [keys, apart] :
         {std::pair{64u, true}, {32u, true}, {64u, false}, {32u, false}, {16u, true}, {16u, false}})
      if (const plain_tile t{rows, keys, apart}; keys <= most_keys && shared_bytes(c, t) <= gpu.shared_bytes)
        return tile_kernel{"attention",
                           "attention",
                           rows,
                           keys,
                           {rows / 8, keys / 16, key_vectors(c), value_vectors(c), apart ? 1u : 0u}};
  return std::nullopt;
}

/// A group of attention_tiled.comp.
struct register_tile {
  uint32_t threads, teams, rows_each, keys_each;

  uint32_t rows() const { return threads / teams / 8 * rows_each; }
  uint32_t keys() const { return 8 * keys_each; }
  /// Bytes of shared memory, as the shader has them.
  int64_t shared_bytes(const attention_call& c) const {
    const int64_t pitch = int64_t{key_vectors(c)} + 1, values = value_vectors(c);
    const int64_t team = keys() * std::max(pitch, values) + rows() * (keys() / 4 + 2);
    const int64_t join = (teams - 1) * int64_t{rows()} * 8 * (ceil_div(values, 8) + 1);
    return 16 * std::max(rows() * pitch + teams * team, join);
  }
};

/// Vectors of a row of the result that an invocation has.
int64_t columns_each(const attention_call& c) {
  return ceil_div(int64_t{value_vectors(c)}, 8);
}

/// Predicted cycles of a call. A multiprocessor issues for 128 invocations a cycle, and shared memory gives a quarter
/// of a subgroup its vectors; a group by itself waits for both and for barriers. Code that is not in the caches yet
/// comes at twenty cycles an instruction (H100).
double predicted_cycles(const attention_call& c, const register_tile& t, const gpu_features& gpu) {
  constexpr double softmax = 40, code = 20, waits = 800, serial = 1.3, overlap = 0.2;
  const int64_t scores = int64_t{t.rows_each} * t.keys_each, sums = t.rows_each * columns_each(c);
  const auto issued =
      static_cast<double>(4 * key_vectors(c) * scores + 4 * t.keys() * sums) + softmax * static_cast<double>(scores);
  const int64_t loaded = ceil_div(t.keys() * int64_t{key_vectors(c) + value_vectors(c)}, t.threads / t.teams);
  const int64_t vectors =
      key_vectors(c) * (t.rows_each + t.keys_each) + t.keys() / 4 * (t.rows_each + 4 * columns_each(c)) + 2 * loaded;
  const auto reads = static_cast<double>(vectors);
  const double computing = issued * t.threads / 128, reading = reads * t.threads / 8;
  const double together = std::max(computing, reading) + overlap * std::min(computing, reading);
  const int64_t groups = c.batch * c.kv_heads * ceil_div(c.rows(), t.rows());
  const auto each = static_cast<double>(ceil_div(groups, gpu.units));
  const auto rounds = static_cast<double>(ceil_div(c.keys, int64_t{t.keys()} * t.teams));
  const double instructions = (8 + softmax) * static_cast<double>(scores) + 16.0 * static_cast<double>(sums);
  return code * instructions + rounds * std::max(each * together, serial * issued + waits);
}

/// The blocks that should be fastest, best first: two, or all that fit.
std::vector<tile_kernel> register_kernels(const attention_call& c, const gpu_features& gpu, way_range ways) {
  constexpr int64_t most_sums = 16;                             // vectors of an invocation
  const int64_t fewest_rows = ways == way_range::every ? 1 : 9; // fewer leave most of a block idle
  constexpr size_t most_usual = 2;
  std::vector<std::pair<double, register_tile>> tiles;
  for (const register_tile& t :
       {register_tile{128, 1, 4, 4}, {64, 1, 4, 4}, {128, 2, 4, 4}, {256, 4, 4, 2}, {128, 2, 2, 4}, {256, 4, 2, 2}})
    if (c.rows() >= fewest_rows && t.threads <= gpu.max_group_size && t.shared_bytes(c) <= gpu.shared_bytes &&
        t.rows_each * columns_each(c) <= most_sums)
      tiles.emplace_back(predicted_cycles(c, t, gpu), t);
  std::stable_sort(tiles.begin(), tiles.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  if (ways == way_range::usual)
    tiles.resize(std::min(tiles.size(), most_usual));
  std::vector<tile_kernel> kernels;
  kernels.reserve(tiles.size());
  for (const auto& [cycles, t] : tiles)
    kernels.push_back(
        {fmt::format("attention.tiled{}x{}{}", t.rows(), t.keys(), t.teams > 1 ? fmt::format("x{}", t.teams) : ""),
         "attention_tiled",
         t.rows(),
         t.keys() * t.teams,
         {t.threads, t.teams, t.rows_each, t.keys_each, key_vectors(c), value_vectors(c)}});
  return kernels;
}

int64_t groups_of(const attention_call& c, const tile_kernel& k) {
  return c.batch * c.kv_heads * ceil_div(c.rows(), k.rows);
}

/// Returns how many keys a group walks over: all, or whole tiles of a split if there are too few groups otherwise.
int64_t keys_of_group(const attention_call& c, const tile_kernel& k, const gpu_features& gpu) {
  const int64_t groups = groups_of(c, k), tiles = ceil_div(c.keys, k.keys);
  if (tiles < 4 || groups == 0 || 2 * groups > int64_t{gpu.units})
    return c.keys;
  const int64_t splits = std::min((tiles + 1) / 2, 2 * int64_t{gpu.units} / groups);
  return ceil_div(tiles, splits) * k.keys;
}

/// Whether all queries and heads of a batch element have the same row of the mask.
bool has_one_mask(const gpu_call& call, const attention_call& c) {
  const shader::uvec4 steps = mask_steps(call, c);
  return call.has_input(3) && steps.y.word == 0 && steps.z.word == 0;
}

std::optional<launch_list> list_for(const gpu_call& call, const attention_call& c, const tile_kernel& k,
                                    int64_t split_keys, const std::string& variant) {
  const int64_t groups = groups_of(c, k),
                splits = std::max<int64_t>(1, ceil_div(c.keys, std::max<int64_t>(split_keys, 1)));
  const bool split = splits > 1;
  launch_builder b(call, split ? k.name + ".split" : k.name);
  if (!add_attention_outputs(b, call, c, variant))
    return std::nullopt;
  const launch_binding partial =
      split ? b.scratch(splits * c.batch * c.heads * c.queries * (2 + c.value_width) * 4) : launch_binding{};
  auto count = flat_groups(groups, 1, call.gpu);
  count[2] = word(splits);
  launch& l = b.add(k.stem + "." + variant, count,
                    {b.in(0), attention_rows(b, c, 1), attention_rows(b, c, 2), b.in(call.has_input(3) ? 3 : 0),
                     split ? written(partial) : b.out(0), b.in(c.limited ? 6 : 0)});
  l.constants = k.constants;
  l.constants.push_back(attention_flags(call, c) | (c.width % 4 == 0 ? shader::attention_key_vectors : 0) |
                        (c.value_width % 4 == 0 ? shader::attention_value_vectors : 0) |
                        (c.softcap > 0 ? shader::attention_softcap : 0) | (c.limited ? shader::attention_limits : 0) |
                        (split ? shader::attention_split : 0) |
                        (has_one_mask(call, c) ? shader::attention_one_mask : 0));
  l.params = attention_parameters(call, c, c.rows(), k.rows, groups, split_keys);
  if (split)
    add_attention_join(b, call, c, variant, partial, splits);
  return b.finish();
}

} // namespace

launch_lists attention_by_tiles(const gpu_call& call, const attention_call& c, const std::string& variant) {
  std::vector<tile_kernel> kernels = register_kernels(c, call.gpu, call.ways);
  if (auto plain = plain_kernel(c, call.gpu))
    kernels.push_back(std::move(*plain));
  launch_lists lists;
  const auto add = [&](const tile_kernel& k, int64_t split_keys) {
    if (auto list = list_for(call, c, k, split_keys, variant))
      lists.push_back(std::move(*list));
  };
  for (const tile_kernel& k : kernels) {
    const int64_t split_keys = keys_of_group(c, k, call.gpu);
    add(k, split_keys);
    if (split_keys < c.keys)
      add(k, c.keys);
  }
  return lists;
}

} // namespace troupe
