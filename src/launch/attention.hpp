// A call of attention as the launch rules of its kernels see it.
#pragma once

#include "launch/launch.hpp"
#include "launch/parameters.hpp"

namespace troupe {

/// Which heads of its operand a call reads: how many there are before them, and how many besides them.
struct heads_within {
  int64_t before = 0, others = 0;
};

/// A call, whichever operator it is of; `…_bshd`: heads come after positions.
struct attention_call {
  int64_t batch, heads, kv_heads, queries, keys, width, value_width;
  bool q_bshd, kv_bshd, y_bshd;
  float scale;
  bool causal;
  int64_t causal_offset;   // query s sees keys ≤ s + causal_offset
  bool skips;              // masked keys are never multiplied, and a row without keys is zero
  int64_t mask_keys;       // keys after these are masked
  float softcap = 0;       // scores become softcap · tanh(score / softcap), unless it is 0
  bool joined = false;     // K and V are outputs 1 and 2, which earlier launches write
  int64_t past = 0;        // keys of inputs 4 and 5, in front of those of inputs 1 and 2
  bool past_wide = false;  // inputs 4 and 5 are float32 beside float16
  bool past_first = false; // positions of inputs 4 and 5 are before batch and heads
  bool new_bshd = false;   // of inputs 1 and 2; `kv_bshd` is of joined keys and values
  bool limited = false;    // input 6 says how many keys of each batch element there are
  /// Of inputs 0, 1 and 2.
  heads_within q_within, k_within, v_within;

  int64_t rows() const { return heads / kv_heads * queries; }
};

/// Steps of an operand in elements: batch, head, row; last, where the first of its `heads` begins.
shader::uvec4 steps_of(int64_t heads, int64_t positions, int64_t width, bool bshd, heads_within within = {});

/// Steps of past keys or values of `width` elements, in the order in which memory has them.
shader::uvec4 past_steps(const attention_call& c, int64_t width);

/// Steps of the mask, input 3; throws `errc::invalid_input` if it does not fit.
shader::uvec4 mask_steps(const gpu_call& call, const attention_call& c);

/// Keys (`i` 1) or values (2) as attention reads them.
launch_binding attention_rows(const launch_builder& b, const attention_call& c, size_t i);

/// The flags of mask, causality and skipping.
uint32_t attention_flags(const gpu_call& call, const attention_call& c);

/// Parameters of the kernels that walk over tiles of keys; `rows` are those of one matrix of queries, which groups
/// compute `tile_rows` at a time.
std::vector<uint32_t> attention_parameters(const gpu_call& call, const attention_call& c, int64_t rows,
                                           uint32_t tile_rows, int64_t groups, int64_t split_keys);

/// What a call of troupe.Attention, or the attention of troupe.AttentionProjection, asks for.
attention_call fused_attention_call(const gpu_call& call);

/// Adds copies of keys and values, past ones first, and the scores, if they are asked for; later launches wait for
/// them. Returns whether the GPU can run them.
bool add_attention_outputs(launch_builder& b, const gpu_call& call, const attention_call& c,
                           const std::string& variant);

/// Adds the launch that joins what `splits` splits of the keys have left in `partial`.
void add_attention_join(launch_builder& b, const gpu_call& call, const attention_call& c, const std::string& variant,
                        const launch_binding& partial, int64_t splits);

/// The kernels for few queries (shaders/attention_lanes.comp, attention_row.comp) that suit, best first.
launch_lists attention_of_few_queries(const gpu_call& call, const attention_call& c, const std::string& variant);

/// Whether these kernels compute what the call asks for, in vectors of that many elements.
bool has_few_queries(const gpu_call& call, const attention_call& c, int64_t vector);

/// A group of the kernels by lanes (shaders/attention_lanes.glsl).
struct lane_group {
  uint32_t threads, lanes, ahead, rows, key_vectors, value_vectors;

  /// Keys that are on their way at once.
  int64_t block() const { return int64_t{threads} / lanes * ahead; }
  /// Whether the device has such groups, with `more` floats in their memory besides.
  bool fits(const gpu_features& gpu, int64_t value_width, int64_t more = 0) const;
  /// The kernels' first constants, before the flags.
  std::vector<uint32_t> constants(const gpu_features& gpu) const;
};

/// Returns how many lanes that share a key leave the fewest of them without a vector of a row, the most of these; 0 if
/// one would have more than `most`.
int64_t lanes_of_key(int64_t vectors, int64_t most, const gpu_features& gpu);

/// The flags and the parameters of these kernels, of groups that see `split_keys` keys.
uint32_t few_queries_flags(const gpu_call& call, const attention_call& c);
std::vector<uint32_t> few_queries_parameters(const gpu_call& call, const attention_call& c, int64_t split_keys);
/// How many of these words stay as they are from step to step (`launch::fixed_words`): some if one query and one new
/// key stand beside past ones, else 0.
int64_t fixed_words_of(const attention_call& c);

/// The kernels of many queries by tiles of keys in shared memory (shaders/attention_tiled.comp, attention.comp), best
/// first.
launch_lists attention_by_tiles(const gpu_call& call, const attention_call& c, const std::string& variant);

/// Adds the launch that writes output 3 of Attention, scores or weights (shaders/attention_scores.comp).
void add_attention_scores(launch_builder& b, const gpu_call& call, const attention_call& c, const std::string& variant);

} // namespace troupe
