// Short forms for tests of single operators: run one by name, make operands.
#pragma once

#include "ops/evaluate.hpp"
#include "ops/registry.hpp"
#include "support/graph_builder.hpp"

namespace troupe::testing {

/// Returns a float32 tensor.
inline tensor floats(shape dims, std::vector<float> values) {
  return tensor::of<float>(std::move(dims), values);
}

/// Returns a float32 tensor of 0, 1, 2 …, each times `step`.
inline tensor ramp(shape dims, float step = 1) {
  tensor t(dtype::float32, std::move(dims));
  for (int64_t i = 0; i < t.size(); ++i)
    t.mutable_data<float>()[i] = static_cast<float>(i) * step;
  return t;
}

/// Returns a vector of int64.
inline tensor longs(std::vector<int64_t> values) {
  return tensor::of<int64_t>({static_cast<int64_t>(values.size())}, values);
}

using test::attrs_of;

/// Runs operator `name` of `opset` (domain ai.onnx).
inline std::vector<tensor> run_op(std::string_view name, int64_t opset, const attributes& attrs,
                                  std::vector<tensor> inputs, size_t outputs = 1) {
  const op_def* def = find_op("", name, opset);
  expects(def != nullptr, "run_op: no such operator");
  return evaluate(*def, attrs, inputs, outputs);
}

/// Runs the newest row of an operator with one output.
inline tensor run(std::string_view domain, std::string_view name, const std::vector<tensor>& inputs,
                  const attributes& attrs = {}) {
  const op_def* def = find_op(domain, name, newest_opset(domain));
  expects(def != nullptr, "run: no such operator");
  return evaluate(*def, attrs, inputs).at(0);
}

/// Returns the elements of a numeric tensor.
inline std::vector<double> elements(const tensor& t) {
  return to_double(t.view());
}

using int_list = std::vector<int64_t>;

} // namespace troupe::testing
