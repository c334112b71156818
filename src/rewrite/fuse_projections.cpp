// Products of the same rows become one node (ops/composed/projections.cpp), so that a decoder's step on a GPU is fewer,
// fuller dispatches: the norm in front of queries, keys and values, or of gate and up; gate's activation times up; a
// product of packed weights with what is added to it and its activation, which MatMulNBits itself has not.
//
// Such a node is worth it where rows are few. A product of floats alone is left as it is, and so is all whose rows are
// known to be many.
//
// A norm that is then left over becomes the end of the product that it reads, however many rows there are: if a GPU
// splits the product, the dispatch that adds the parts normalises them too. Others may read the sums as well.
#include "ops/composed/projections.hpp"
#include "rewrite/epilogue.hpp"
#include "rewrite/match.hpp"
#include "rewrite/passes.hpp"

#include <algorithm>

namespace troupe {
namespace {

using projection::slot;

/// A product with what follows it, as it goes into the node.
struct product {
  std::vector<node_id> nodes;                                                         // first the product
  std::vector<value_id> operands = std::vector<value_id>(projection::each, no_value); // by slot
  attributes attrs;
  value_id out = no_value;

  bool is_packed() const { return operands[slot::scales] != no_value; }
  bool has_residual() const { return operands[slot::residual] != no_value; }
};

bool is_constant(const graph_editor& e, value_id v) {
  return v == no_value || e.val(v).constant;
}

/// A product of floats; its own operator has all that follows it.
std::optional<product> float_product_at(const graph_editor& e, node_id n) {
  const node& call = e.at(n);
  if (!is_float_product(call))
    return std::nullopt;
  const value_id weights = call.inputs[1];
  const bool plain = call.attrs.integer("transA", 0) == 0 && call.attrs.real("alpha", 1) == 1;
  if (!plain || weights == no_value || !e.val(weights).constant || e.val(weights).constant->dims.size() != 2 ||
      !is_constant(e, input_of(call, 2)))
    return std::nullopt;
  product p{.nodes = {n}, .attrs = call.attrs, .out = call.outputs[0]};
  p.operands[slot::weights] = weights;
  p.operands[slot::bias] = input_of(call, 2);
  p.operands[slot::residual] = input_of(call, 3);
  return p;
}

/// A product of packed weights, with a residual and an activation after it.
std::optional<product> packed_product_at(const graph_editor& e, node_id n) {
  const node& call = e.at(n);
  const int64_t bits = call.attrs.integer("bits", 4);
  if (call.op_type != "MatMulNBits" || call.domain != "com.microsoft" || (bits != 4 && bits != 8) ||
      input_of(call, 4) != no_value)
    return std::nullopt;
  for (const size_t i : {1, 2, 3, 5})
    if (!is_constant(e, input_of(call, i)))
      return std::nullopt;
  product p{.nodes = {n}, .attrs = call.attrs, .out = call.outputs[0]};
  p.operands[slot::weights] = call.inputs[1];
  p.operands[slot::scales] = call.inputs[2];
  p.operands[slot::zeros] = input_of(call, 3);
  p.operands[slot::bias] = input_of(call, 5);
  const auto next = [&] { return e.used_once(p.out) ? e.only_consumer(p.out) : -1; };
  if (const value_id residual = residual_of(e, next(), p.out); residual != no_value) {
    p.operands[slot::residual] = residual;
    p.nodes.push_back(next());
    p.out = e.at(next()).outputs[0];
  }
  if (const auto act = activation_of(e, next(), p.out)) {
    set_activation(p.attrs, *act);
    p.nodes.push_back(next());
    p.out = e.at(next()).outputs[0];
  }
  return p;
}

/// Whether node `n` computes rows of floats, that GPUs have kernels for, of such rows.
bool is_of_rows(const graph_editor& e, node_id n) {
  const node& call = e.at(n);
  if (call.inputs.empty() || call.inputs[0] == no_value || call.outputs.empty() || call.outputs[0] == no_value)
    return false;
  const auto& dims = e.val(call.inputs[0]).dims;
  const dtype type = e.val(call.inputs[0]).type;
  const bool floats = type == dtype::float32 || type == dtype::float16;
  return dims && dims->size() >= 2 && floats && e.val(call.outputs[0]).type == type;
}

std::optional<product> product_at(const graph_editor& e, node_id n) {
  if (!is_of_rows(e, n) || has_many_rows(*e.val(e.at(n).inputs[0]).dims))
    return std::nullopt;
  auto p = float_product_at(e, n);
  return p ? p : packed_product_at(e, n);
}

/// The products that read `rows`; empty if anything else does, or there are too many.
std::vector<product> products_of(const graph_editor& e, value_id rows) {
  std::vector<product> all;
  if (e.is_output(rows))
    return {};
  for (const node_id n : e.consumers(rows)) {
    auto p = product_at(e, n);
    const auto times = std::count(e.at(n).inputs.begin(), e.at(n).inputs.end(), rows);
    if (!p || times != 1 || e.at(n).inputs[0] != rows || all.size() == most_projections)
      return {};
    all.push_back(std::move(*p));
  }
  const bool any_residual = std::ranges::any_of(all, &product::has_residual);
  return all.size() > 1 && any_residual ? std::vector<product>{} : all;
}

/// The norm over the last axis that node `n` is, with scale and shift as long as that: its attributes; nullopt if it is
/// none.
std::optional<attributes> norm_at(const graph_editor& e, node_id n) {
  const node& call = e.at(n);
  if (!is_op(call, "LayerNormalization") && !is_op(call, "RMSNormalization"))
    return std::nullopt;
  const auto& dims = e.val(call.inputs[0]).dims;
  const bool other_outputs = std::any_of(call.outputs.begin() + 1, call.outputs.end(), [&](value_id v) {
    return v != no_value && (e.uses(v) > 0 || e.is_output(v));
  });
  const int64_t axis = call.attrs.integer("axis", -1);
  if (!dims || dims->size() < 2 || other_outputs || (axis != -1 && axis != std::ssize(*dims) - 1))
    return std::nullopt;
  for (size_t i = 1; i < call.inputs.size(); ++i) {
    const value_id v = call.inputs[i];
    const bool fits = v == no_value || (e.val(v).constant && e.val(v).type == e.val(call.inputs[0]).type &&
                                        e.val(v).dims->size() == 1 && (*e.val(v).dims)[0] == dims->back());
    if (!fits)
      return std::nullopt;
  }
  attributes attrs;
  attrs.set("axis", int64_t{-1});
  attrs.set("epsilon", call.attrs.real("epsilon", 1e-5f));
  return attrs;
}

/// The Mul of two products that are for nothing else, the first of them perhaps after an activation; -1 if there is
/// none. Puts them in that order.
node_id gate_of(const graph_editor& e, std::vector<product>& products) {
  if (products.size() != 2 || !e.used_once(products[0].out) || !e.used_once(products[1].out))
    return -1;
  const node_id n = e.only_consumer(products[0].out);
  const bool both = n >= 0 && n == e.only_consumer(products[1].out) && is_op(e.at(n), "Mul") &&
                    same_dims(e, products[0].out, products[1].out);
  if (!both)
    return -1;
  if (products[1].attrs.has("activation"))
    std::swap(products[0], products[1]);
  return products[1].attrs.has("activation") ? -1 : n;
}

/// Puts one node in the place of `norm` (-1 for none), products and `gate` (-1 for none).
bool join(graph_editor& e, value_id rows, node_id norm, const attributes& norm_attrs,
          const std::vector<product>& products, node_id gate) {
  node joined = make_node(e.at(products[0].nodes[0]).name, "troupe", "Projections", {}, {});
  joined.inputs = {rows, no_value, no_value};
  std::vector<node_id> old;
  if (norm >= 0) {
    joined.name = e.at(norm).name + "+" + joined.name;
    joined.attrs.set("norm", e.at(norm).op_type);
    add_part(joined.attrs, norm_attrs, "norm");
    for (size_t i = 1; i < e.at(norm).inputs.size(); ++i)
      joined.inputs[i] = e.at(norm).inputs[i];
  }
  joined.attrs.set("products", static_cast<int64_t>(products.size()));
  for (size_t p = 0; p < products.size(); ++p) {
    add_part(joined.attrs, products[p].attrs, std::to_string(p));
    joined.inputs.insert(joined.inputs.end(), products[p].operands.begin(), products[p].operands.end());
    old.insert(old.end(), products[p].nodes.begin(), products[p].nodes.end());
    if (gate < 0)
      joined.outputs.push_back(products[p].out);
  }
  if (gate >= 0) {
    joined.attrs.set("gated", int64_t{1});
    joined.outputs = {e.at(gate).outputs[0]};
    old.push_back(gate);
  }
  while (joined.inputs.back() == no_value)
    joined.inputs.pop_back();
  return e.replace_all(old, std::move(joined));
}

/// The products after a norm.
bool fuse_after_norm(graph_editor& e, node_id n) {
  const auto attrs = norm_at(e, n);
  if (!attrs)
    return false;
  std::vector<product> products = products_of(e, e.at(n).outputs[0]);
  if (products.empty())
    return false;
  const node_id gate = gate_of(e, products);
  return join(e, e.at(n).inputs[0], n, *attrs, products, gate);
}

/// The norm `n` becomes the end of the product that it reads, whose sums others may read too.
bool fuse_into_product(graph_editor& e, node_id n) {
  const auto attrs = norm_at(e, n);
  const node_id maker = attrs ? e.producer(e.at(n).inputs[0]) : -1;
  const auto p = maker >= 0 && is_of_rows(e, maker) ? float_product_at(e, maker) : std::nullopt;
  if (!p)
    return false;
  const node& norm = e.at(n);
  node joined = make_node(e.at(maker).name + "+" + norm.name, "troupe", "Projections", {}, {norm.outputs[0]});
  joined.inputs = {e.at(maker).inputs[0], no_value, no_value};
  joined.inputs.insert(joined.inputs.end(), p->operands.begin(), p->operands.end());
  joined.inputs.insert(joined.inputs.end(), norm.inputs.begin() + 1, norm.inputs.end());
  joined.attrs.set("products", int64_t{1});
  joined.attrs.set("last_norm", norm.op_type);
  add_part(joined.attrs, p->attrs, "0");
  add_part(joined.attrs, *attrs, "last_norm");
  if (!e.used_once(p->out))
    joined.outputs.push_back(p->out);
  return e.replace_all(std::array{maker, n}, std::move(joined));
}

/// Two products that gate each other without a norm, or one of packed weights with something after it.
bool fuse_without_norm(graph_editor& e, node_id n) {
  const value_id rows = e.at(n).inputs.empty() ? no_value : e.at(n).inputs[0];
  auto first = rows == no_value ? std::nullopt : product_at(e, n);
  if (!first)
    return false;
  std::vector<product> products = products_of(e, rows);
  const node_id gate = gate_of(e, products);
  if (gate < 0) {
    if (!first->is_packed() || first->nodes.size() == 1)
      return false;
    products = {std::move(*first)};
  }
  return join(e, rows, -1, {}, products, gate);
}

} // namespace

bool fuse_projections(graph_editor& e) {
  bool changed = each_present_node(e, [&](node_id n) { return fuse_after_norm(e, n); });
  changed |= each_present_node(e, [&](node_id n) {
    return (e.at(n).op_type == "MatMul" || e.at(n).op_type == "MatMulNBits") && fuse_without_norm(e, n);
  });
  changed |= each_present_node(e, [&](node_id n) { return fuse_into_product(e, n); });
  return changed;
}

} // namespace troupe
