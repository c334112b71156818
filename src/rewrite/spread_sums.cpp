// A constant that is added to a Concat is added to its inputs instead, where each is a constant or ends a product,
// which takes the sum in: the token of the class and the patches of a vision transformer, whose positions are added
// after them, need no dispatch for that.
//
//   Concat(t, A · B + bias) + p = Concat(t + p₀, A · B + bias + p₁), where t, p and so t + p₀ are constants
#include "rewrite/match.hpp"
#include "rewrite/passes.hpp"

namespace troupe {
namespace {

/// Whether node `n` multiplies matrices and does no more than that.
bool is_product(const graph_editor& e, node_id n) {
  if (n < 0 || !(is_op(e.at(n), "MatMul") || is_op(e.at(n), "Gemm")))
    return false;
  const auto& dims = e.val(e.at(n).inputs[0]).dims;
  return dims && dims->size() >= 2;
}

/// Whether `v` is the result of a product, perhaps with a constant bias, that is read once.
bool ends_product(const graph_editor& e, value_id v) {
  if (!e.used_once(v) || !e.val(v).dims || e.val(v).dims->empty())
    return false;
  const node_id n = e.producer(v);
  if (n < 0 || !is_op(e.at(n), "Add"))
    return is_product(e, n);
  for (const size_t i : {0, 1}) {
    const value_id product = e.at(n).inputs[i], bias = e.at(n).inputs[1 - i];
    const weight_ptr w = bias == no_value ? nullptr : e.val(bias).constant;
    if (w && e.used_once(product) && is_product(e, e.producer(product)) && same_dims(e, product, v))
      return w->dims.size() == 1 && e.val(v).dims->back().is(w->dims[0]);
  }
  return false;
}

/// An Add of a constant, as large as what it is added to: a Concat that nothing else reads.
struct sum_after_concat {
  node_id concat;
  value_id added;
  size_t axis;
};

std::optional<sum_after_concat> sum_at(const graph_editor& e, node_id n) {
  if (!is_op(e.at(n), "Add"))
    return std::nullopt;
  for (const size_t i : {0, 1}) {
    const value_id joined = e.at(n).inputs[i], added = e.at(n).inputs[1 - i];
    const node_id concat = joined == no_value ? -1 : produced_by(e, joined, "Concat");
    if (concat < 0 || added == no_value || !e.val(added).constant || !may_derive(*e.val(added).constant) ||
        !e.used_once(joined) || !same_dims(e, joined, added))
      continue;
    const auto rank = static_cast<int64_t>(e.val(joined).dims->size());
    const int64_t axis = e.at(concat).attrs.integer("axis");
    return sum_after_concat{concat, added, static_cast<size_t>(axis < 0 ? axis + rank : axis)};
  }
  return std::nullopt;
}

/// Whether each input of the Concat is a constant or ends a product, and there are both: products alone write their
/// parts of the Concat themselves.
bool takes_parts(const graph_editor& e, const node& concat) {
  size_t constants = 0;
  for (const value_id v : concat.inputs) {
    if (v == no_value || !e.val(v).dims || !is_constant(*e.val(v).dims))
      return false;
    const weight_ptr& w = e.val(v).constant;
    if (w ? !may_derive(*w) : !ends_product(e, v))
      return false;
    constants += w ? 1 : 0;
  }
  return constants > 0 && constants < concat.inputs.size();
}

bool spread(graph_editor& e, node_id n) {
  const auto sum = sum_at(e, n);
  if (!sum || !takes_parts(e, e.at(sum->concat)))
    return false;
  node concat = e.at(sum->concat);
  concat.outputs = e.at(n).outputs;
  const auto integer = [](int64_t i) { return weight::from_tensor(tensor::of<int64_t>({1}, std::span(&i, 1))); };
  int64_t begin = 0;
  for (value_id& v : concat.inputs) {
    const int64_t end = begin + (*e.val(v).dims)[sum->axis].constant();
    const weight_ptr part = derive(
        "Slice", {e.val(sum->added).constant, integer(begin), integer(end), integer(static_cast<int64_t>(sum->axis))});
    const std::string name = e.val(v).name + "/sum";
    if (const weight_ptr w = e.val(v).constant)
      v = e.add_constant(name, derive("Add", {w, part}));
    else
      v = add_inferred(e, make_node(name, "", "Add", {v, e.add_constant(name + "/added", part)}, {}), name);
    begin = end;
  }
  return e.replace(n, std::move(concat));
}

} // namespace

bool spread_sums(graph_editor& e) {
  return each_present_node(e, [&](node_id n) { return spread(e, n); });
}

} // namespace troupe
