// FlexAttention of ai.onnx.preview: Y = prob_mod(softmax(score_mod(Q · Kᵀ · scale))) · V, where both modifiers are
// graphs of the model's own.
//
// Operands are [batch, heads, positions, size]; query heads share key heads in runs. Scores and weights are of the type
// softmax_precision, by default float32, or float64 for operands of that; the first product is of the operands' type,
// as ONNX's reference has it. Without a modifier the call is one of Attention.
#include "ops/composed/flex_attention.hpp"

#include "ops/infer.hpp"
#include "ops/operand.hpp"

#include <cmath>

namespace troupe {
namespace {

/// The call's dims; `sharing` query heads have the same keys.
struct flex_dims {
  symbolic_shape q, k, v;
  int64_t sharing = 1;
};

flex_dims dims_of(const expansion& e) {
  flex_dims d{e.dims(e.input(0), 4), e.dims(e.input(1), 4), e.dims(e.input(2), 4)};
  require_same_dims(symbolic_shape{d.k[0], d.k[3], d.v[0], d.v[1], d.v[2]},
                    symbolic_shape{d.q[0], d.q[3], d.q[0], d.k[1], d.k[2]},
                    "batch and size of K, and batch, heads and positions of V");
  if (d.q[1] == d.k[1])
    return d;
  if (!d.q[1].is_constant() || !d.k[1].is_constant())
    fail(errc::unsupported, "how many heads of Q, {}, share one of K, {}, is not known", d.q[1].to_string(),
         d.k[1].to_string());
  if (d.k[1].constant() < 1 || d.q[1].constant() % d.k[1].constant() != 0)
    fail(errc::invalid_model, "{} query heads cannot share {} key heads", d.q[1].constant(), d.k[1].constant());
  d.sharing = d.q[1].constant() / d.k[1].constant();
  return d;
}

dtype precision_of(const expansion& e) {
  const dtype type = e.type(e.input(0));
  const dtype stated = stated_type(e.attrs(), "softmax_precision", type == dtype::float64 ? type : dtype::float32);
  if (!(types::floats & set_of(stated)))
    fail(errc::invalid_model, "softmax_precision is {}, which is not a type of floats", to_string(stated));
  return stated;
}

/// `v`, [batch, key heads, rows, columns], as operand of a product for each head of K; `shared`: with a dim that its
/// query heads share.
value_id by_key_head(expansion& e, value_id v, const flex_dims& d, bool shared) {
  if (d.sharing == 1)
    return v;
  const symbolic_shape at = e.dims(v);
  return e.reshape(v, {at[0], d.k[1], shared ? 1 : d.sharing, at[2], at[3]});
}

/// The same in the way back: the result of such a product with query heads in one dim.
value_id by_query_head(expansion& e, value_id v, const flex_dims& d) {
  if (d.sharing == 1)
    return v;
  const symbolic_shape at = e.dims(v);
  return e.reshape(v, {at[0], d.q[1], at[3], at[4]});
}

/// Without modifiers; the rewrite takes apart a call that has one.
void expand_flex_attention(expansion& e) {
  dims_of(e);
  precision_of(e);
  attributes attrs;
  if (e.attrs().has("scale"))
    attrs.set("scale", e.attrs().real("scale"));
  e.set_output(0, e.add("Attention", {e.input(0), e.input(1), e.input(2)}, std::move(attrs)));
}

constexpr op_def rows[] = {
    composition_row("FlexAttention", 1, expand_flex_attention,
                    {.domain = preview, .inputs = {3, 3}, .types = types::floats}),
};

} // namespace

extern constinit const op_table composed_flex_attention_ops = rows;

value_id flex_scores(expansion& e) {
  const flex_dims d = dims_of(e);
  const dim& size = d.q[3];
  if (!e.attrs().has("scale") && !size.is_constant())
    fail(errc::unsupported, "no scale is stated, and the size of a head, {}, is not known", size.to_string());
  const double scale = e.attrs().has("scale")
                           ? static_cast<double>(e.attrs().real("scale"))
                           : 1 / std::sqrt(static_cast<double>(std::max<int64_t>(1, size.constant())));
  const value_id q = e.add("Mul", {e.input(0), e.scalar(e.type(e.input(0)), scale)});
  const value_id turned = e.transpose(e.input(1), {0, 1, 3, 2});
  const value_id scores = e.add("MatMul", {by_key_head(e, q, d, false), by_key_head(e, turned, d, true)});
  return e.cast(by_query_head(e, scores, d), precision_of(e));
}

value_id flex_weights(expansion& e, value_id scores) {
  return e.add("Softmax", {scores}, attributes_of({{"axis", int64_t{-1}}}));
}

void set_flex_result(expansion& e, value_id weights) {
  const flex_dims d = dims_of(e);
  const value_id v = e.cast(e.input(2), e.type(weights));
  const value_id y = e.add("MatMul", {by_key_head(e, weights, d, false), by_key_head(e, v, d, true)});
  e.set_output(0, e.cast(by_query_head(e, y, d), e.type(e.input(0))));
}

} // namespace troupe
