// The axes of troupe.Attention and troupe.AttentionProjection.
#include "ops/axes.hpp"
#include "ops/composed/fused_attention.hpp"
#include "ops/head_layout.hpp"

namespace troupe {
namespace {

/// Batches: a batch element's queries, keys, values and cache; and queries, unless which keys they see depends on their
/// position. The mask broadcasts; `results` is the dim of the result that has the queries, `residual` one of its dims.
void add_attention_axes(call_axes& a, size_t results, size_t residual) {
  const attributes& attrs = a.call().attrs();
  const size_t cache = positions_first(attrs) ? 1 : 0;
  call_axis& batch = a.map({{0, 0}, {1, 0}, {2, 0}, {past_key_input, cache}, {past_value_input, cache}}, 0);
  a.join(batch, a.fit(3, 0, 4));
  a.join(batch, a.fit(residual, 0, 3));
  if (attrs.integer("is_causal", 0) == 0)
    a.map({{0, is_bshd(attrs, "q_layout") ? 1u : 2u}, a.fit(3, 2, 4), a.fit(residual, 1, 3)}, results);
}

} // namespace

void fused_attention_axes(call_axes& a) {
  add_attention_axes(a, is_bshd(a.call().attrs(), "out_layout") ? 1 : 2, call_axes::nowhere);
}

void attention_projection_axes(call_axes& a) {
  add_attention_axes(a, 1, attention_projection::residual);
}

} // namespace troupe
