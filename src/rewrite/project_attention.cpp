// The product that all heads of an attention go through becomes part of it (troupe.AttentionProjection,
// ops/composed/fused_attention.cpp): in a decoder's step a GPU has one dispatch for both, in which the matrix is on its
// way while the heads are computed.
//
// The heads come after positions, and a Reshape puts them together. Where rows are known to be many, the two stay
// apart.
#include "base/checked.hpp"
#include "ops/composed/fused_attention.hpp"
#include "ops/head_layout.hpp"
#include "rewrite/match.hpp"
#include "rewrite/passes.hpp"

namespace troupe {
namespace {

/// Whether node `n` multiplies rows of floats by a constant matrix, with a bias and a residual at most.
bool is_projection(const graph_editor& e, node_id n) {
  const node& call = e.at(n);
  if (!is_float_product(call))
    return false;
  const value_id weights = call.inputs[1];
  const value& rows = e.val(call.inputs[0]);
  const bool floats = rows.type == dtype::float32 || rows.type == dtype::float16;
  return floats && rows.dims && rows.dims->size() == 3 && !has_many_rows(*rows.dims) &&
         call.attrs.integer("transA", 0) == 0 && e.val(weights).constant && e.val(weights).constant->dims.size() == 2 &&
         e.val(weights).type == rows.type;
}

/// The attention whose heads, one after the other, are `rows` and nothing else; -1 if there is none.
node_id attention_of(const graph_editor& e, value_id rows) {
  const node_id reshape = e.used_once(rows) ? produced_by(e, rows, "Reshape") : -1;
  if (reshape < 0)
    return -1;
  const value_id heads = e.at(reshape).inputs[0];
  const node_id n = e.used_once(heads) ? e.producer(heads) : -1;
  if (n < 0 || !is_own(e.at(n), "Attention") || !e.val(heads).dims)
    return -1;
  const symbolic_shape &apart = *e.val(heads).dims, &together = *e.val(rows).dims;
  const bool bshd = is_bshd(e.at(n).attrs, "out_layout");
  const dim &positions = apart[bshd ? 1 : 2], &count = apart[bshd ? 2 : 1], &width = apart[3];
  const bool in_order = bshd || positions.is(1); // [B, H, 1, D] is in memory as [B, 1, H, D]
  const bool joins = in_order && apart[0] == together[0] && positions == together[1] && count.is_constant() &&
                     width.is_constant() && together[2].is(checked_mul(count.constant(), width.constant()));
  return joins ? n : -1;
}

bool project(graph_editor& e, node_id n) {
  if (!is_projection(e, n))
    return false;
  const node product = e.at(n);
  const node_id at = attention_of(e, product.inputs[0]);
  if (at < 0)
    return false;
  const node attention = e.at(at);
  std::vector<value_id> inputs = attention.inputs;
  inputs.resize(attention_projection::weights, no_value);
  inputs.insert(inputs.end(), product.inputs.begin() + 1, product.inputs.end());
  node joined = make_node(attention.name + "+" + product.name, "troupe", "AttentionProjection", std::move(inputs),
                          product.outputs, attention.attrs);
  joined.attrs.set("out_layout", std::string("bshd"));
  add_part(joined.attrs, product.attrs, attention_projection::product);
  return e.replace_all(std::array{at, n}, std::move(joined));
}

} // namespace

bool project_attention(graph_editor& e) {
  return each_present_node(e, [&](node_id n) { return project(e, n); });
}

} // namespace troupe
