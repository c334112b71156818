// A product by a constant whose columns are only read in parts (the queries, keys and values of attention, written as
// one product) becomes a product for each part: the parts need not be copied out, and a device may run them at the same
// time. Where rows are known to be many, one large product is worth more than that: attention reads such parts where
// they are (packed_heads.cpp).
//
// The parts are the outputs of a Split of the last axis, or Gathers of one index each of a last axis that a Reshape cut
// in two.
#include "rewrite/match.hpp"
#include "rewrite/passes.hpp"

#include <algorithm>

namespace troupe {
namespace {

constexpr size_t most_parts = 4;
constexpr int64_t fewest_columns = 64; // of a part: more, smaller products cost more than a copy

/// Columns [begin, begin + count) of the product, which node `reader` gives as `out`.
struct part {
  node_id reader;
  value_id out;
  int64_t begin, count;
};

/// The parts that a Split makes of the product's columns; empty if it does something else.
std::vector<part> parts_of_split(const graph_editor& e, node_id n, int64_t columns) {
  const node& split = e.at(n);
  const auto& dims = e.val(split.inputs[0]).dims;
  const int64_t axis = split.attrs.integer("axis", 0), last = static_cast<int64_t>(dims->size()) - 1;
  std::vector<part> parts;
  int64_t begin = 0;
  for (const value_id out : split.outputs) {
    if ((axis != last && axis != -1) || out == no_value || !e.val(out).dims || !e.val(out).dims->back().is_constant())
      return {};
    const int64_t count = e.val(out).dims->back().constant();
    parts.push_back({n, out, begin, count});
    begin += count;
  }
  return begin == columns ? parts : std::vector<part>{};
}

/// The parts that Gathers read of a view whose last axis is a part, and the axis before it which part; empty if
/// something else reads it.
std::vector<part> parts_of_gathers(const graph_editor& e, value_id view, int64_t columns) {
  const auto& dims = e.val(view).dims;
  if (!dims || dims->size() < 2 || !dims->back().is_constant() || e.is_output(view))
    return {};
  const int64_t rank = static_cast<int64_t>(dims->size()), count = dims->back().constant();
  const dim& choices = (*dims)[dims->size() - 2];
  if (count == 0 || columns % count != 0 || !choices.is(columns / count))
    return {};
  std::vector<part> parts;
  for (const node_id n : e.consumers(view)) {
    const node& gather = e.at(n);
    if (!is_op(gather, "Gather") || gather.inputs[0] != view)
      return {};
    const int64_t axis = gather.attrs.integer("axis", 0);
    const auto& index = e.val(gather.inputs[1]).dims;
    const auto known = known_integers(e, gather.inputs[1]);
    if ((axis != rank - 2 && axis != -2) || !index || !index->empty() || !known)
      return {};
    const int64_t chosen = known->at(0) < 0 ? known->at(0) + columns / count : known->at(0);
    if (chosen < 0 || chosen >= columns / count)
      return {};
    parts.push_back({n, gather.outputs[0], chosen * count, count});
  }
  return parts;
}

std::vector<part> parts_of(const graph_editor& e, value_id product, int64_t columns) {
  const node_id reader = e.used_once(product) ? e.only_consumer(product) : -1;
  if (reader < 0)
    return {};
  if (is_op(e.at(reader), "Split"))
    return parts_of_split(e, reader, columns);
  if (is_op(e.at(reader), "Reshape"))
    return parts_of_gathers(e, e.at(reader).outputs[0], columns);
  return {};
}

tensor one_integer(int64_t value) {
  return tensor::of<int64_t>({1}, std::span<const int64_t>(&value, 1));
}

/// Columns of a constant along `axis`, as a value.
value_id columns_of(graph_editor& e, value_id v, const part& p, int64_t axis) {
  const auto integer = [](int64_t i) { return weight::from_tensor(one_integer(i)); };
  return e.add_constant(
      e.val(v).name + "/columns" + std::to_string(p.begin),
      derive("Slice", {e.val(v).constant, integer(p.begin), integer(p.begin + p.count), integer(axis)}));
}

/// Returns the product's columns if it is one by a constant matrix whose parts can be taken out; 0 if not.
int64_t separable_columns(const graph_editor& e, const node& product) {
  if (!is_float_product(product))
    return 0;
  const auto may_slice = [&](value_id v) {
    return v != no_value && e.val(v).constant && may_derive(*e.val(v).constant);
  };
  const value_id bias = input_of(product, 2);
  if (!may_slice(product.inputs[1]) || (bias != no_value && !may_slice(bias)) || input_of(product, 3) != no_value)
    return 0;
  const weight_ptr& right = e.val(product.inputs[1]).constant;
  const auto& dims = e.val(product.outputs[0]).dims;
  if (right->dims.size() != 2 || !dims || dims->size() < 2 || !dims->back().is_constant() || has_many_rows(*dims) ||
      (bias != no_value && e.val(bias).constant->dims != shape{dims->back().constant()}))
    return 0;
  return dims->back().constant();
}

/// Adds the product of a part's columns; returns its result. `product` is a copy of the whole one.
value_id add_product(graph_editor& e, node product, const part& p) {
  product.name += "/columns" + std::to_string(p.begin);
  product.inputs[1] = columns_of(e, product.inputs[1], p, product.attrs.integer("transB", 0) != 0 ? 0 : 1);
  if (const value_id bias = input_of(product, 2); bias != no_value)
    product.inputs[2] = columns_of(e, bias, p, 0);
  const value_id y = e.add_result(e.val(p.out).name + "/product");
  product.outputs = {y};
  e.add_node(std::move(product));
  return y;
}

bool split_product_at(graph_editor& e, node_id n) {
  const int64_t columns = separable_columns(e, e.at(n));
  const std::vector<part> parts = columns > 0 ? parts_of(e, e.at(n).outputs[0], columns) : std::vector<part>{};
  if (parts.empty() || parts.size() > most_parts)
    return false;
  for (const part& p : parts)
    if (p.count < fewest_columns || !e.val(p.out).dims)
      return false;
  const node product = e.at(n);
  std::vector<value_id> results; // made before the readers go: what nothing reads goes with them
  results.reserve(parts.size());
  for (const part& p : parts)
    results.push_back(add_product(e, product, p));
  for (const part& p : parts)
    e.erase(p.reader);
  for (size_t i = 0; i < parts.size(); ++i) {
    const value_id out = parts[i].out;
    e.add_node(make_reshape(e, e.val(out).name + "/view", results[i], *e.val(out).dims, out));
  }
  return true;
}

} // namespace

bool split_products(graph_editor& e) {
  return each_present_node(e, [&](node_id n) { return e.at(n).op_type == "MatMul" && split_product_at(e, n); });
}

} // namespace troupe
