// Attention of few queries, such as a decode step's: a group for rows of the result that share keys
// (shaders/attention_lanes.comp) or, without shuffles and for wide heads, for one row (shaders/attention_row.comp);
// several that each see a split if there are many keys. Past keys and values may be operands of their own.
#include "base/round_up.hpp"
#include "launch/attention.hpp"
#include "ops/head_layout.hpp"

#include <algorithm>
#include <bit>

namespace troupe {
namespace {

/// A kernel's groups for all the keys, or for a split of them, and its constants before the flags.
struct few_queries_kernel {
  std::string name, stem;
  bool joins;                        // whether it joins splits itself
  int64_t groups, split_keys, block; // block: keys that a group has on their way at once, if it joins
  std::vector<uint32_t> constants;
};

/// A group of attention_row.comp, and the keys that it sees.
struct row_group {
  uint32_t threads, lanes, key_vectors, value_vectors, width; // width: elements of a vector
  int64_t split_keys;

  uint32_t slices() const { return std::bit_floor(threads / value_vectors); }
  int64_t shared_bytes() const {
    const uint32_t work = std::max(lanes * (threads + 4), (width + 1) * threads);
    return 4 * (int64_t{work} + threads + 32 + int64_t{key_vectors} * width);
  }
};

/// As many invocations as keys; more groups where one would see very many keys while multiprocessors idle.
std::optional<row_group> choose_row_group(const attention_call& c, int64_t vector, const gpu_features& gpu) {
  constexpr int64_t many_keys = 2048, enough_keys = 1024;
  row_group g{.key_vectors = word(c.width / vector),
              .value_vectors = word(c.value_width / vector),
              .width = word(vector),
              .split_keys = c.keys};
  g.lanes = std::bit_floor(std::min(8u, g.key_vectors));
  for (const uint32_t threads : {1024u, 512u, 256u, 128u}) {
    g.threads = threads;
    const bool wanted = threads <= 256 || c.keys > threads / 2;
    if (wanted && threads <= gpu.max_group_size && g.shared_bytes() <= gpu.shared_bytes)
      break;
    g.threads = 0;
  }
  if (g.threads == 0)
    return std::nullopt;
  const int64_t groups = c.batch * c.heads * c.queries;
  if (c.keys > many_keys && groups > 0 && groups < int64_t{gpu.units}) {
    const int64_t splits =
        std::min(ceil_div(c.keys, enough_keys), std::max<int64_t>(2, 2 * int64_t{gpu.units} / groups));
    g.split_keys = ceil_div(ceil_div(c.keys, splits), g.threads) * g.threads;
  }
  return g;
}

std::optional<few_queries_kernel> row_kernel(const attention_call& c, int64_t vector, const gpu_features& gpu) {
  const auto g = choose_row_group(c, vector, gpu);
  if (!g)
    return std::nullopt;
  return few_queries_kernel{"attention.row",
                            "attention_row",
                            false,
                            c.batch * c.heads * c.queries,
                            g->split_keys,
                            0,
                            {g->threads, g->lanes, g->key_vectors, g->value_vectors, g->slices()}};
}

/// Of a group: as many as it can have.
constexpr int64_t all_rows = INT64_MAX;

/// Whether a group for each row fills the device: then groups are better small, and read keys for several rows at once.
bool fill(const attention_call& c, const gpu_features& gpu) {
  return c.batch * c.heads * c.queries > int64_t{gpu.units};
}

/// A group for at most `rows` rows, for a split of the keys or for all of them; nullopt if the kernel does not suit
/// heads or device.
std::optional<lane_group> choose_lane_group(const attention_call& c, int64_t vector, const gpu_features& gpu,
                                            int64_t rows, bool split) {
  // Registers: vectors of a row of Q and Y, and of keys in small groups and in large ones.
  constexpr int64_t most_vectors = 4, most_ahead = 4, in_small = 8, in_large = 4, fewest_threads = 64, small = 256;
  const int64_t vectors = std::max(c.width, c.value_width) / vector, lanes = lanes_of_key(vectors, most_vectors, gpu);
  if (!gpu.subgroup_shuffle || lanes == 0)
    return std::nullopt;
  const int64_t each = ceil_div(vectors, lanes), words = c.past > 0 && c.past_wide ? 2 : 1;
  const bool is_small = split || fill(c, gpu);
  const int64_t ahead = std::clamp<int64_t>((is_small ? in_small : in_large) / (each * words), 1, most_ahead);
  const auto wanted =
      std::clamp<int64_t>(ceil_div(c.keys, ahead) * lanes, fewest_threads, is_small ? small : 2 * small);
  const lane_group g{
      .threads = std::bit_ceil(word(split ? small : wanted)),
      .lanes = word(lanes),
      .ahead = word(ahead),
      .rows = word(std::clamp<int64_t>(std::min(most_vectors / each, c.heads / c.kv_heads * c.queries), 1, rows)),
      .key_vectors = word(c.width / vector),
      .value_vectors = word(c.value_width / vector)};
  return g.fits(gpu, c.value_width) ? std::optional(g) : std::nullopt;
}

few_queries_kernel lane_kernel(const attention_call& c, const lane_group& g, int64_t splits, const gpu_features& gpu) {
  const int64_t blocks = ceil_div(c.heads / c.kv_heads * c.queries, g.rows);
  return {"attention.lanes",
          "attention_lanes",
          true,
          c.batch * c.kv_heads * blocks,
          splits > 1 ? ceil_div(ceil_div(c.keys, splits), g.block()) * g.block() : c.keys,
          g.block(),
          g.constants(gpu)};
}

/// By small groups for splits of the keys, as many as the device has room for: of one row each, whose code is shorter,
/// or of several where keys and values are more than its cache holds (H100, a step of llama_1b at 1,000 keys: 1.247 ms
/// with one row, 1.252 with two, 1.277 with four).
std::vector<few_queries_kernel> split_kernels(const attention_call& c, int64_t vector, int64_t key_bytes,
                                              const gpu_features& gpu) {
  constexpr int64_t cached_bytes = int64_t{32} << 20;
  const bool is_cached = c.batch * c.kv_heads * c.keys * key_bytes <= cached_bytes;
  std::vector<few_queries_kernel> kernels;
  const auto add = [&](int64_t rows) {
    const auto g = choose_lane_group(c, vector, gpu, rows, true);
    if (!g)
      return;
    const int64_t groups = std::max<int64_t>(1, lane_kernel(c, *g, 1, gpu).groups),
                  room = std::max<int64_t>(1, 2 * int64_t{gpu.units} / groups);
    few_queries_kernel split = lane_kernel(c, *g, std::min(ceil_div(c.keys, g->block()), room), gpu);
    split.name += fmt::format(".split{}", g->rows);
    const bool is_new = kernels.empty() || kernels[0].name != split.name;
    if (split.split_keys < c.keys && is_new)
      kernels.push_back(std::move(split));
  };
  for (const int64_t rows : fill(c, gpu) ? std::array{all_rows, int64_t{1}}
                            : is_cached  ? std::array{int64_t{1}, int64_t{2}}
                                         : std::array{int64_t{2}, int64_t{1}})
    add(rows);
  return kernels;
}

/// By a group for all the keys, and for splits of them where that leaves multiprocessors idle. The latter are first if
/// what a group has to read becomes less by more than it reads while groups wait for each other's results.
std::vector<few_queries_kernel> lane_kernels(const attention_call& c, int64_t vector, const gpu_features& gpu) {
  constexpr int64_t waiting_bytes = 192 << 10;
  const int64_t key_bytes = (c.width + c.value_width) * (c.past > 0 && c.past_wide ? 4 : 16 / vector);
  std::vector<few_queries_kernel> kernels = split_kernels(c, vector, key_bytes, gpu);
  const bool pays = !kernels.empty() && (c.keys - kernels[0].split_keys) * key_bytes > waiting_bytes;
  if (const auto g = choose_lane_group(c, vector, gpu, fill(c, gpu) ? all_rows : 1, false))
    kernels.insert(pays ? kernels.end() : kernels.begin(), lane_kernel(c, *g, 1, gpu));
  return kernels;
}

std::optional<launch_list> list_for(const gpu_call& call, const attention_call& c, const few_queries_kernel& k,
                                    const std::string& variant) {
  const int64_t rows = c.batch * c.heads * c.queries, splits = ceil_div(c.keys, k.split_keys);
  const bool split = splits > 1, apart = c.past > 0;
  launch_builder b(call, split && !k.joins ? k.name + ".split" : k.name);
  const launch_binding partial = split ? b.scratch(splits * rows * (2 + c.value_width) * 4) : launch_binding{};
  auto groups = flat_groups(k.groups, 1, call.gpu);
  groups[2] = word(splits);
  const bool joins = split && k.joins;
  launch& l =
      b.add(fmt::format("{}.{}{}", k.stem, variant, joins ? "_split" : ""), groups,
            {b.in(0), b.in(1), b.in(2), b.in(call.has_input(3) ? 3 : 0), split && !joins ? written(partial) : b.out(0),
             b.in(apart ? past_key_input : 1), b.in(apart ? past_value_input : 2)});
  if (joins)
    l.bindings.insert(l.bindings.end(), {written(partial), b.counters(k.groups)});
  l.constants = k.constants;
  l.constants.push_back(few_queries_flags(call, c) | (split && !joins ? shader::attention_split : 0) |
                        (k.split_keys <= k.block ? shader::attention_one_block : 0));
  l.params = few_queries_parameters(call, c, k.split_keys);
  l.fixed_words = fixed_words_of(c);
  l.fixed_groups = l.fixed_words > 0 && !split; // their number depends on the keys
  if (split && !joins)
    add_attention_join(b, call, c, variant, partial, splits);
  return b.finish();
}

} // namespace

bool has_few_queries(const gpu_call& call, const attention_call& c, int64_t vector) {
  constexpr int64_t most_queries = 4, most_width = 512;
  const bool apart = c.past > 0;
  const dtype type = call.inputs[0].type;
  const bool wide = apart && c.past_wide; // which no other kernel reads
  return c.queries >= 1 && (wide || c.queries <= most_queries) && c.keys > 0 && c.width > 0 && c.width % vector == 0 &&
         c.value_width > 0 && c.value_width % vector == 0 && c.width <= most_width && c.value_width <= most_width &&
         c.softcap == 0 && !c.limited && !c.joined && !call.has_output(3) &&
         (!apart || wide || (call.inputs[past_key_input].type == type && call.inputs[past_value_input].type == type));
}

int64_t lanes_of_key(int64_t vectors, int64_t most, const gpu_features& gpu) {
  int64_t best = 0, least = INT64_MAX;
  for (const int64_t lanes : {8, 4, 2, 1})
    if (const int64_t each = ceil_div(vectors, lanes);
        lanes <= gpu.subgroup_size && each <= most && each * lanes < least) {
      best = lanes;
      least = each * lanes;
    }
  return best;
}

bool lane_group::fits(const gpu_features& gpu, int64_t value_width, int64_t more) const {
  const int64_t parts = int64_t{threads / gpu.subgroup_size} * rows * (2 + value_width);
  return threads <= gpu.max_group_size && threads % gpu.subgroup_size == 0 &&
         4 * (parts + more + 1) <= gpu.shared_bytes;
}

std::vector<uint32_t> lane_group::constants(const gpu_features& gpu) const {
  return {threads, threads / gpu.subgroup_size, lanes, ahead, rows, key_vectors, value_vectors};
}

uint32_t few_queries_flags(const gpu_call& call, const attention_call& c) {
  return attention_flags(call, c) | (c.past > 0 ? shader::attention_past : 0) |
         (c.past > 0 && c.past_wide ? shader::attention_wide_past : 0);
}

int64_t fixed_words_of(const attention_call& c) {
  return c.queries == 1 && c.batch == 1 && c.keys - c.past == 1 ? shader::attention_row_fixed : 0;
}

std::vector<uint32_t> few_queries_parameters(const gpu_call& call, const attention_call& c, int64_t split_keys) {
  const int64_t present = c.keys - c.past;
  const auto k_steps = steps_of(c.kv_heads, present, c.width, c.new_bshd, c.k_within),
             v_steps = steps_of(c.kv_heads, present, c.value_width, c.new_bshd, c.v_within);
  return words_of(shader::attention_row{.rows = c.batch * c.heads * c.queries,
                                        .queries = c.queries,
                                        .heads = c.heads,
                                        .sharing = c.heads / c.kv_heads,
                                        .value_width = c.value_width,
                                        .scale = c.scale,
                                        .q_steps = steps_of(c.heads, c.queries, c.width, c.q_bshd, c.q_within),
                                        .k_steps = k_steps,
                                        .v_steps = v_steps,
                                        .y_steps = steps_of(c.heads, c.queries, c.value_width, c.y_bshd),
                                        .keys = c.keys,
                                        .past = c.past,
                                        .split_keys = split_keys,
                                        .mask_keys = c.mask_keys,
                                        .past_k_steps = past_steps(c, c.width),
                                        .past_v_steps = past_steps(c, c.value_width),
                                        .mask_steps = mask_steps(call, c),
                                        .causal_offset = static_cast<int>(c.causal_offset)});
}

launch_lists attention_of_few_queries(const gpu_call& call, const attention_call& c, const std::string& variant) {
  const int64_t vector = 16 / bytes_of(call.inputs[0].type, 1);
  if (!has_few_queries(call, c, vector))
    return {};
  std::vector<few_queries_kernel> kernels = lane_kernels(c, vector, call.gpu);
  if (auto by_row = row_kernel(c, vector, call.gpu))
    kernels.push_back(std::move(*by_row));
  launch_lists lists;
  for (const few_queries_kernel& k : kernels)
    if (auto list = list_for(call, c, k, variant))
      lists.push_back(std::move(*list));
  return lists;
}

} // namespace troupe
