// The order of heads and positions in an operand of attention or rotary embedding.
#pragma once

#include "base/error.hpp"
#include "graph/attributes.hpp"
#include "graph/dim.hpp"

#include <array>
#include <span>

namespace troupe {

/// Inputs of attention, ONNX's and troupe's two, that hold past keys and values.
inline constexpr size_t past_key_input = 4, past_value_input = 5;

/// Returns whether an operator's input `i` is a cache that it may also read with positions before batch and heads: see
/// `positions_first`.
inline bool is_cache_input(std::string_view domain, std::string_view op_type, size_t i) {
  const bool attends = (domain.empty() || domain == "troupe") && op_type == "Attention";
  const bool projects = domain == "troupe" && op_type == "AttentionProjection";
  return (attends || projects) && (i == past_key_input || i == past_value_input);
}

/// Returns whether attribute past_layout says that caches lie with positions first, [P, B, H, D] ("sbhd"), so that they
/// can grow; by default ("bhsd") they are [B, H, P, D]. Throws `errc::invalid_model` for other texts.
inline bool positions_first(const attributes& attrs) {
  const std::string text = attrs.text("past_layout", "bhsd");
  if (text != "bhsd" && text != "sbhd")
    fail(errc::invalid_model, "attribute 'past_layout' is '{}', but must be bhsd or sbhd", text);
  return text == "sbhd";
}

/// Returns whether attention in float16 reads a float32 cache of these dims, [B, H, P, D], where kernels of GPUs do.
inline bool attention_reads_wide(const symbolic_shape& dims) {
  constexpr int64_t most_width = 512, vector = 8;
  return dims.size() == 4 && dims[3].is_constant() && dims[3].constant() % vector == 0 &&
         dims[3].constant() <= most_width;
}

/// Returns the dims of a cache in the order batch, heads, positions, width.
template <class Dim>
std::array<Dim, 4> cache_dims(const attributes& attrs, std::span<const Dim> dims) {
  if (dims.size() != 4)
    fail(errc::invalid_model, "attention takes caches of rank 4, not {}", dims.size());
  if (positions_first(attrs))
    return {dims[1], dims[2], dims[0], dims[3]};
  return {dims[0], dims[1], dims[2], dims[3]};
}

/// Heads [first, first + count) of an operand.
struct head_range {
  int64_t first, count;
};

/// Attributes of troupe.Attention that name the heads of inputs 0, 1 and 2 that take part, [first, count]; without them
/// it is all heads.
inline constexpr std::array<std::string_view, 3> head_attributes{"q_heads", "k_heads", "v_heads"};

/// Returns which of the `heads` heads of input `i` of troupe.Attention, 0 to 2, take part. Throws `errc::invalid_model`
/// for an attribute that is not two numbers, and for heads that are not there.
inline head_range heads_read(const attributes& attrs, size_t i, int64_t heads) {
  const std::string_view name = head_attributes.at(i);
  if (!attrs.has(name))
    return {0, heads};
  const std::vector<int64_t> range = attrs.integers(name);
  if (range.size() != 2)
    fail(errc::invalid_model, "attribute '{}' has {} numbers, but must be a first head and a count", name,
         range.size());
  if (range[0] < 0 || range[1] < 0 || range[0] > heads || range[1] > heads - range[0])
    fail(errc::invalid_model, "attribute '{}' names {} heads from head {} on, but there are {}", name, range[1],
         range[0], heads);
  return {range[0], range[1]};
}

/// Returns whether attribute `name` puts heads after positions ("bshd"); by default ("bhsd") they come before. Throws
/// `errc::invalid_model` for other texts.
inline bool is_bshd(const attributes& attrs, std::string_view name) {
  const std::string text = attrs.text(name, "bhsd");
  if (text != "bhsd" && text != "bshd")
    fail(errc::invalid_model, "attribute '{}' is '{}', but must be bhsd or bshd", name, text);
  return text == "bshd";
}

/// Returns whether the positions of troupe.Rotary's operand, of that rank, come before its heads.
inline bool rotary_is_bshd(const attributes& attrs, size_t rank) {
  return rank == 3 || is_bshd(attrs, "layout");
}

/// Returns the dims of troupe.Rotary's operand with its heads apart: of rank 3, [B, S, H · D], it has attribute
/// num_heads. Throws `errc::invalid_model` for other ranks and for heads of unequal width.
inline std::array<int64_t, 4> rotary_dims(const attributes& attrs, std::span<const int64_t> x) {
  if (x.size() == 4)
    return {x[0], x[1], x[2], x[3]};
  const int64_t heads = attrs.integer("num_heads", 0);
  if (x.size() != 3 || heads < 1 || x[2] % heads != 0)
    fail(errc::invalid_model, "rotary embedding: an operand of rank {} has no {} heads", x.size(), heads);
  return {x[0], x[1], heads, x[2] / heads};
}

} // namespace troupe
