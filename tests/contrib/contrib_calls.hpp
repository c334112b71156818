// Short forms for tests of operators of com.microsoft.
#pragma once

#include "ops/run_op.hpp"
#include "support/catch.hpp"
#include "support/thrown.hpp"

#include <cmath>

namespace troupe::testing {

/// Runs an operator of com.microsoft.
inline std::vector<tensor> call(std::string_view op, const attributes& attrs, const std::vector<tensor>& inputs,
                                size_t outputs = 1) {
  return evaluate(*find_op("com.microsoft", op, 1), attrs, inputs, outputs);
}

/// Returns why a call is refused; it must be an error of the call.
inline std::string refusal(std::string_view op, const attributes& attrs, const std::vector<tensor>& inputs,
                           size_t outputs = 1) {
  const error e = test::thrown_by([&] { call(op, attrs, inputs, outputs); });
  CHECK(e.code() != errc::internal);
  return e.what();
}

/// Returns a tensor of int32.
inline tensor ints(shape dims, const std::vector<int32_t>& values) {
  return tensor::of<int32_t>(std::move(dims), values);
}

/// Returns a float32 tensor as float64 or float16.
inline tensor converted(const tensor& t, dtype type) {
  return run_op("Cast", 21, attrs_of({{"to", static_cast<int64_t>(type == dtype::float64 ? 11 : 10)}}), {t})[0];
}

/// Numbers between −1 and 1 without a pattern.
inline tensor noise(shape dims, int64_t seed) {
  tensor t(dtype::float32, std::move(dims));
  for (int64_t i = 0; i < t.size(); ++i)
    t.mutable_data<float>()[i] = std::sin(static_cast<float>((i + 1) * (seed * 37 + 11)));
  return t;
}

} // namespace troupe::testing
