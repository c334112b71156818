#include "rewrite/match.hpp"

#include "ops/evaluate.hpp"

namespace troupe {

node_id produced_by(const graph_editor& e, value_id v, std::string_view op_type) {
  const node_id n = e.producer(v);
  return n >= 0 && is_op(e.at(n), op_type) ? n : -1;
}

std::optional<std::vector<int64_t>> known_integers(const graph_editor& e, value_id v) {
  if (v == no_value)
    return std::nullopt;
  const value& x = e.val(v);
  if (x.known && is_constant(*x.known))
    return constants(*x.known);
  const bool integral = (types::integers | types::boolean) & set_of(x.type);
  if (!x.constant || !integral || volume(x.constant->dims) > static_cast<int64_t>(max_known_elements))
    return std::nullopt;
  return to_int64(materialise(*x.constant).view());
}

std::optional<double> scalar_constant(const graph_editor& e, value_id v) {
  if (v == no_value || !e.val(v).constant)
    return std::nullopt;
  const weight& w = *e.val(v).constant;
  if (!(types::numeric & set_of(w.type)) || volume(w.dims) != 1)
    return std::nullopt;
  return to_double(materialise(w).view()).at(0);
}

bool all_equal(const graph_editor& e, value_id v, double wanted) {
  if (v == no_value || !e.val(v).constant)
    return false;
  const weight& w = *e.val(v).constant;
  if (!(types::fixed_size & set_of(w.type)) || volume(w.dims) > static_cast<int64_t>(max_known_elements))
    return false;
  if (w.type == dtype::boolean) {
    const auto bits = to_int64(materialise(w).view());
    return std::all_of(bits.begin(), bits.end(), [&](int64_t x) { return x == static_cast<int64_t>(wanted); });
  }
  const auto elements = to_double(materialise(w).view());
  return std::all_of(elements.begin(), elements.end(), [&](double x) { return x == wanted; });
}

bool same_dims(const graph_editor& e, value_id a, value_id b) {
  const auto &x = e.val(a).dims, &y = e.val(b).dims;
  return x && y && *x == *y;
}

node make_node(const std::string& name, std::string_view domain, std::string_view op_type, std::vector<value_id> inputs,
               std::vector<value_id> outputs, attributes attrs) {
  node n{.name = name, .op_type = std::string(op_type), .domain = std::string(domain), .attrs = std::move(attrs)};
  n.inputs = std::move(inputs);
  n.outputs = std::move(outputs);
  n.def = find_op(domain, op_type, newest_opset(domain));
  expects(n.def != nullptr, "make_node: unknown operator");
  return n;
}

node make_reshape(graph_editor& e, const std::string& name, value_id input, const symbolic_shape& dims,
                  value_id output) {
  attributes attrs;
  attrs.set("allowzero", int64_t{1}); // a dim that turns out to be 0 is 0, not "copy"
  const value_id target = e.add_known(name + "/shape", dims);
  return make_node(name, "", "Reshape", {input, target}, {output}, std::move(attrs));
}

std::vector<int64_t> permutation_of(const node& n, size_t rank) {
  std::vector<int64_t> reversed(rank);
  for (size_t i = 0; i < rank; ++i)
    reversed[i] = static_cast<int64_t>(rank - 1 - i);
  return n.attrs.integers("perm", reversed);
}

} // namespace troupe
