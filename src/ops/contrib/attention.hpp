// What the compositions of attention share (contrib_attention.cpp, decoder_attention.cpp, group_query_attention.cpp,
// sparse_attention.cpp).
#pragma once

#include "ops/expansion.hpp"

namespace troupe {

/// Returns [batch, sequence, heads · size] as [batch, heads, sequence, size]; an operand of rank 4 as it is.
value_id split_heads(expansion& e, value_id v, int64_t heads);

/// Returns [batch, heads, sequence, size] as [batch, sequence, heads · size].
value_id join_heads(expansion& e, value_id v);

/// Queries, keys and values of heads that share keys, each [batch, sequence, heads · size].
struct grouped_operands {
  int64_t heads, kv_heads;
  value_id q, k, v;

  /// Reads attributes num_heads and kv_num_heads, and inputs 0 to 2: Q, K and V, or all of them packed as the first.
  explicit grouped_operands(expansion& e);

  /// Turns queries and keys at places `ids`, [batch, sequence], by the caches that are inputs `cosine` and `sine`.
  void rotate(expansion& e, size_t cosine, size_t sine, value_id ids);
};

/// Hands on attribute `scale`, where 0 means the usual one.
void set_scale(const expansion& e, attributes& attrs);

/// What changes the scores of attention, no_value for nothing: a mask of what counts, and what is added.
struct attention_changes {
  value_id mask, added;
};

struct attention_operands {
  value_id q, k, v;
  value_id past_key = no_value, past_value = no_value;
};

/// Returns attribute num_heads; throws `errc::invalid_model` unless it is positive.
int64_t heads_of(const expansion& e);

/// Returns parts of the last axis of one value (Q, K and V), which have these sizes.
std::vector<value_id> split_last(expansion& e, value_id v, const symbolic_shape& sizes);

/// Adds the parts of input `bias` to those operands that are projections.
void add_bias(expansion& e, attention_operands& o, size_t bias);

/// Returns output [batch, queries, hidden], and present key, present value and scaled product where `outputs` asks for
/// them.
std::vector<value_id> attend(expansion& e, attention_operands o, const attention_changes& changes, size_t outputs);

} // namespace troupe
