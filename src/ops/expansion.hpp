// Operators that are compositions of others: their row holds no kernel, but the calls that take their place.
//
// The rewrite puts these calls into the graph as it meets the node (rewrite/infer_and_fold.cpp), so that devices, row
// rules, fusion and cost know nothing of such an operator: whatever its parts have, on CPUs and GPUs, it has. Calls may
// be of compositions again, but not of the operator itself. What it asks of its operands is asked at each binding, be
// it that its calls do not: the graph keeps it as it was (`graph::asked`). Where no rewrite runs (building a model in
// code, the oracles of tests), inference and evaluation make a scratch graph of the call and walk that.
#pragma once

#include "ops/families.hpp"

#include <functional>

namespace troupe {

/// One call of a composition while it is taken apart. Errors are those of inference: each call that is added is
/// inferred at once.
class expansion {
public:
  /// Returns a name that no value of the graph has, made of the one that is given.
  using name_taker = std::function<std::string(const std::string&)>;

  expansion(graph& g, node& n, name_taker take_name);

  // -- the call
  const infer_context& call() const { return call_; }
  const attributes& attrs() const { return node_.attrs; }
  bool has_input(size_t i) const { return call_.has_input(i); }
  bool has_output(size_t i) const { return call_.has_output(i); }
  /// Returns operand `i`, no_value if it is absent.
  value_id input(size_t i) const { return has_input(i) ? node_.inputs[i] : no_value; }

  // -- values
  dtype type(value_id v) const { return at(v).type; }
  /// Returns the dims of a value; throws `errc::unsupported` if not even its rank is known. A copy: values move when
  /// one is added.
  symbolic_shape dims(value_id v) const;
  /// The same; throws `errc::invalid_model` unless the rank is `wanted`.
  symbolic_shape dims(value_id v, size_t wanted) const;
  size_t rank(value_id v) const { return dims(v).size(); }
  /// Returns a constant without dims.
  value_id scalar(dtype type, double number);
  value_id constant(tensor bytes);
  /// Returns a vector of int64 that the host knows (a Reshape's shape, a list of axes).
  value_id known(const symbolic_shape& elements);
  /// Returns an int64 without dims that the host knows.
  value_id known_scalar(const dim& element);
  /// Returns 0, 1 … count − 1 as int64.
  value_id range(const dim& count);

  // -- calls
  /// Adds a call of an operator's newest row with one output, and returns that. Operands at the end that are no_value
  /// are left out.
  value_id add(std::string_view op, std::vector<value_id> inputs, attributes attrs = {}, std::string_view domain = "");
  /// The same with `outputs` results.
  std::vector<value_id> add_all(std::string_view op, std::vector<value_id> inputs, size_t outputs,
                                attributes attrs = {}, std::string_view domain = "");
  /// Returns `v` plus operand `i`; `v` if that is absent.
  value_id plus_input(value_id v, size_t i);
  value_id reshape(value_id v, const symbolic_shape& to);
  value_id transpose(value_id v, std::vector<int64_t> permutation);
  value_id cast(value_id v, dtype to);

  /// Makes `v` output `i` of the call; nothing if the call leaves that output out.
  void set_output(size_t i, value_id v);
  /// Returns the calls that take the node's place.
  std::vector<node> take();

private:
  const value& at(value_id v) const;
  std::string next_name(std::string_view what);
  node* producer_of(value_id v);

  graph& graph_;
  node& node_;
  infer_context call_;
  name_taker take_name_;
  std::string prefix_;
  std::vector<node> steps_;
  std::vector<std::pair<value_id, value_id>> results_; // of the call, and what they are
};

/// The composition of an operator that ai.onnx has, too: a call of `Op` with the same operands, results and attributes.
template <const char* Op>
void expand_same(expansion& e) {
  std::vector<value_id> inputs;
  for (size_t i = 0; i < e.call().input_count(); ++i)
    inputs.push_back(e.input(i));
  const auto made = e.add_all(Op, std::move(inputs), e.call().output_count(), e.attrs());
  for (size_t i = 0; i < made.size(); ++i)
    e.set_output(i, made[i]);
}

/// Returns attributes from names and values.
attributes attributes_of(std::initializer_list<std::pair<const char*, attribute>> list);

/// Returns the calls that take the place of `n`, whose row is a composition and whose operands are inferred.
std::vector<node> expand(graph& g, node& n, expansion::name_taker take_name);

/// Inference of a composition: that of its calls.
void infer_by_expansion(infer_context& c);

/// `evaluate` for a composition.
std::vector<tensor> evaluate_expansion(const op_def& def, const attributes& attrs, std::span<const tensor> inputs,
                                       size_t output_count);

/// Returns the row of a composition.
constexpr op_def composition_row(std::string_view name, int64_t since, void (*expand)(expansion&), op_def rest) {
  rest.expand = expand;
  return op_row(name, since, infer_by_expansion, nullptr, rest);
}

} // namespace troupe
