#include "rewrite/match.hpp"

#include "base/limits.hpp"
#include "ops/evaluate.hpp"

#include <cmath>
#include <limits>

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

std::optional<float> as_attribute(double number, dtype type) {
  const auto narrow = static_cast<float>(number);
  const bool loses = type == dtype::float64 && static_cast<double>(narrow) != number && !std::isnan(number);
  return loses ? std::nullopt : std::optional(narrow);
}

bool is_near(double found, double wanted, dtype type) {
  // Half a step of the shorter types, which hold no number that is nearer.
  const double relative = type == dtype::float16 ? 0x1p-11 : type == dtype::bfloat16 ? 0x1p-8 : 1e-6;
  return std::abs(found - wanted) <= relative * std::abs(wanted);
}

bool is_scalar(const graph_editor& e, value_id v, double wanted) {
  const auto found = scalar_constant(e, v);
  return found && is_near(*found, wanted, e.val(v).type);
}

value_id other_operand(const graph_editor& e, node_id n, std::string_view op_type, double scalar) {
  if (n < 0 || !is_op(e.at(n), op_type) || e.at(n).inputs.size() != 2)
    return no_value;
  const node& call = e.at(n);
  for (size_t i : {1, 0})
    if (is_scalar(e, call.inputs[i], scalar) && same_dims(e, call.inputs[1 - i], call.outputs[0]))
      return call.inputs[1 - i];
  return no_value;
}

std::optional<scaled_value> scaled_by_constant(const graph_editor& e, value_id v) {
  const node_id n = e.producer(v);
  if (n < 0 || !(is_op(e.at(n), "Mul") || is_op(e.at(n), "Div")))
    return std::nullopt;
  const bool divides = is_op(e.at(n), "Div");
  for (size_t i : {1, 0}) {
    const value_id other = e.at(n).inputs[1 - i];
    const auto scale = scalar_constant(e, e.at(n).inputs[i]);
    if (scale && same_dims(e, other, v) && !(divides && (i == 0 || *scale == 0)))
      return scaled_value{other, divides ? 1 / *scale : *scale};
  }
  return std::nullopt;
}

std::optional<scalar_call> scalar_call_of(const graph_editor& e, const node& n) {
  if (!is_op(n, "Clip") || n.def->since < 11) {
    auto call = scalar_call_of(*n.def, n.attrs);
    return call && call->values == std::ssize(n.inputs) ? call : std::nullopt;
  }
  const dtype type = e.val(n.inputs[0]).type;
  if (!(types::floats & set_of(type)))
    return std::nullopt;
  scalar_call call{scalar_code::clip, 1, {}};
  for (size_t i : {1, 2}) {
    const double most = largest_number(type);
    const auto bound =
        input_of(n, i) != no_value ? scalar_constant(e, n.inputs[i]) : std::optional(i == 1 ? -most : most);
    const auto number = bound ? as_attribute(*bound, type) : std::nullopt;
    if (!number)
      return std::nullopt;
    call.numbers.push_back(*number);
  }
  return call;
}

node_id consumed_by(const graph_editor& e, value_id v, std::string_view op_type) {
  const node_id n = e.only_consumer(v);
  return n >= 0 && is_op(e.at(n), op_type) ? n : -1;
}

bool has_row(std::string_view op_type, std::string_view domain) {
  return find_op(domain, op_type, newest_opset(domain)) != nullptr;
}

weight_ptr derive(std::string_view op_type, std::vector<weight_ptr> inputs, attributes attrs) {
  graph g;
  node n = make_node("weight", "", op_type, {}, {g.add_value({.name = "weight"})}, std::move(attrs));
  int64_t bytes = 0;
  for (const weight_ptr& w : inputs) {
    n.inputs.push_back(g.add_value({.name = "operand", .type = w->type, .dims = to_symbolic(w->dims), .constant = w}));
    bytes = std::max(bytes, bytes_of(w->type, volume(w->dims)));
  }
  infer_node(g, n);
  const value& out = g.values[n.outputs[0]];
  const shape dims = constants(*out.dims);
  if (std::max(bytes, bytes_of(out.type, volume(dims))) > limits::eager_bytes)
    return make_step(*n.def, n.attrs, std::move(inputs), out.type, dims);
  std::vector<tensor> operands;
  operands.reserve(inputs.size());
  for (const weight_ptr& w : inputs)
    operands.push_back(materialise(*w));
  return weight::from_tensor(evaluate(*n.def, n.attrs, operands).at(0));
}

bool may_derive(const weight& w) {
  const auto bytes = static_cast<double>(bytes_of(w.type, volume(w.dims)));
  return recipe_work(w) <= limits::derived_work_a_byte * bytes;
}

weight_ptr derive_reshape(const weight_ptr& w, const shape& dims) {
  if (w->dims == dims)
    return w;
  if (!w->step && w->leaf.bytes() <= limits::eager_bytes)
    return weight::from_tensor(w->leaf.reshaped(dims));
  const tensor target = tensor::of<int64_t>({static_cast<int64_t>(dims.size())}, std::span<const int64_t>(dims));
  return derive("Reshape", {w, weight::from_tensor(target)});
}

bool same_dims(const graph_editor& e, value_id a, value_id b) {
  if (a == no_value || b == no_value)
    return false;
  const auto &x = e.val(a).dims, &y = e.val(b).dims;
  return x && y && *x == *y;
}

bool has_many_rows(const symbolic_shape& product) {
  constexpr int64_t many_rows = 16;
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < product.size(); ++i) {
    if (!product[i].is_constant())
      return false;
    rows *= std::min(product[i].constant(), many_rows);
  }
  return rows >= many_rows;
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
  // Made before the graph grows: the name may be that of one of its values, which move then.
  node made = make_node(name, "", "Reshape", {input, no_value}, {output}, std::move(attrs));
  made.inputs[1] = e.add_known(made.name + "/shape", dims);
  return made;
}

value_id add_inferred(graph_editor& e, node n, const std::string& origin) {
  const value_id out = e.add_result(origin + "/" + std::to_string(e.model().values.size()));
  n.outputs = {out};
  e.add_node(std::move(n));
  return out;
}

attributes perm_attribute(std::vector<int64_t> perm) {
  attributes attrs;
  attrs.set("perm", std::move(perm));
  return attrs;
}

std::vector<int64_t> permutation_of(const node& n, size_t rank) {
  std::vector<int64_t> reversed(rank);
  for (size_t i = 0; i < rank; ++i)
    reversed[i] = static_cast<int64_t>(rank - 1 - i);
  return n.attrs.integers("perm", reversed);
}

} // namespace troupe
