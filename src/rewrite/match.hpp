// What passes look for in nodes and values.
#pragma once

#include "ops/registry.hpp"
#include "ops/scalar_function.hpp"
#include "rewrite/editor.hpp"

namespace troupe {

/// Returns whether `n` is the ai.onnx operator `op_type` with its first input and output present. Files may leave
/// operands out: whatever a pass reads beyond these two, it must expect to be no_value.
inline bool is_op(const node& n, std::string_view op_type) {
  return n.op_type == op_type && n.domain.empty() && !n.inputs.empty() && n.inputs[0] != no_value &&
         !n.outputs.empty() && n.outputs[0] != no_value;
}

/// Returns whether `n` is the operator `op_type` of troupe itself, which only passes make.
inline bool is_own(const node& n, std::string_view op_type) {
  return n.op_type == op_type && n.domain == "troupe";
}

/// Returns whether `n` is a product of floats, with what follows it (troupe's own MatMul) or without.
inline bool is_float_product(const node& n) {
  return is_own(n, "MatMul") || is_op(n, "MatMul");
}

/// Returns whether `n` is a product of bytes.
inline bool is_quantized_product(const node& n) {
  return is_own(n, "QuantizedConv") || is_own(n, "QuantizedMatMul");
}

/// Returns the node that produces `v` if it is ai.onnx operator `op_type`, else -1.
node_id produced_by(const graph_editor& e, value_id v, std::string_view op_type);

/// Returns input `i` of a node, no_value where it is absent.
inline value_id input_of(const node& n, size_t i) {
  return i < n.inputs.size() ? n.inputs[i] : no_value;
}

/// Returns the elements of an integer value that the host knows as plain numbers.
std::optional<std::vector<int64_t>> known_integers(const graph_editor& e, value_id v);

/// Returns the element of a numeric constant that has exactly one, of up to `max_rank` dims.
std::optional<double> scalar_constant(const graph_editor& e, value_id v);

/// Returns whether a model's literal `found`, of `type`, is the number `wanted`: to 1e-6 of it, or as near as the type
/// can come.
bool is_near(double found, double wanted, dtype type);
/// Returns whether a value is a constant of one element that `is_near` to `wanted`.
bool is_scalar(const graph_editor& e, value_id v, double wanted);

/// Returns the other operand if `n` is the commutative operator `op_type` and one operand is a scalar equal to
/// `scalar`, provided that the output has the other operand's dims; else no_value.
value_id other_operand(const graph_editor& e, node_id n, std::string_view op_type, double scalar);

/// Returns x and c if `v` = x · c for a constant scalar c: written as Mul or Div, with v's dims those of x.
struct scaled_value {
  value_id source;
  double scale;
};
std::optional<scaled_value> scaled_by_constant(const graph_editor& e, value_id v);

/// Returns `number` as an attribute, which is a float32; nullopt if that loses digits of a number beside elements of
/// `type` (float64).
std::optional<float> as_attribute(double number, dtype type);

/// Returns the scalar function that `n` is, a Clip's constant bounds as numbers; nullopt for other nodes and for more
/// or fewer inputs than the function's values.
std::optional<scalar_call> scalar_call_of(const graph_editor& e, const node& n);

/// Returns the only consumer of `v` if it is ai.onnx operator `op_type`, else -1.
node_id consumed_by(const graph_editor& e, value_id v, std::string_view op_type);

/// Returns whether two values are known to have equal dims.
bool same_dims(const graph_editor& e, value_id a, value_id b);

/// Returns whether the rows of a product with these dims are known before dims are bound, and many.
bool has_many_rows(const symbolic_shape& product);

/// Returns whether the operator table has such a row.
bool has_row(std::string_view op_type, std::string_view domain = "");

/// Returns a weight that is `op_type` (newest row, one output) over constants: computed at once where it is small, else
/// a recipe.
weight_ptr derive(std::string_view op_type, std::vector<weight_ptr> inputs, attributes attrs = {});
/// Returns whether a weight's recipe is short enough to be made longer: if many nodes follow each other, each adds a
/// step over all of the weight.
bool may_derive(const weight& w);
/// Returns a weight of the same elements under other dims; nothing is copied for leaves.
weight_ptr derive_reshape(const weight_ptr& w, const shape& dims);

/// Returns a node of the newest row of an operator; `name` is its name.
node make_node(const std::string& name, std::string_view domain, std::string_view op_type, std::vector<value_id> inputs,
               std::vector<value_id> outputs, attributes attrs = {});

/// Returns a Reshape of `input` to `dims` that produces `output`.
node make_reshape(graph_editor& e, const std::string& name, value_id input, const symbolic_shape& dims,
                  value_id output);

/// Adds a node with one fresh output named after `origin`, infers it, and returns the output.
value_id add_inferred(graph_editor& e, node n, const std::string& origin);

/// Returns a Transpose's attributes.
attributes perm_attribute(std::vector<int64_t> perm);
/// Returns the permutation of a Transpose node over a value of `rank` dims.
std::vector<int64_t> permutation_of(const node& n, size_t rank);

} // namespace troupe
