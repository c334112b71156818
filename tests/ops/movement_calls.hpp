// Short forms for tests of operators that move elements.
#pragma once

#include "ops/evaluate.hpp"
#include "ops/registry.hpp"

namespace troupe::testing {

inline tensor ints(shape dims, std::vector<int64_t> values) {
  return tensor::of<int64_t>(std::move(dims), values);
}

/// Runs operator `name` of domain ai.onnx.
inline std::vector<tensor> call(const char* name, std::vector<tensor> inputs, attributes attrs = {}, size_t outputs = 1,
                                int64_t opset = 19) {
  return evaluate(*find_op("", name, opset), attrs, inputs, outputs);
}

/// Attributes that hold one.
inline attributes with(std::string name, attribute value) {
  attributes attrs;
  attrs.set(std::move(name), std::move(value));
  return attrs;
}

/// The elements of a float32 tensor.
inline std::vector<float> floats(const tensor& t) {
  return {t.values<float>().begin(), t.values<float>().end()};
}

} // namespace troupe::testing
