// Elementwise operators of one operand: y[i] = f(x[i]). Parameters are attributes.
#include "base/parallel.hpp"
#include "ops/families.hpp"
#include "ops/infer.hpp"

#include <cmath>

namespace troupe {
namespace {

/// Elements a thread should have before another one pays.
constexpr int64_t grain = 16 * 1024;

/// Applies `f(float) -> float` (double for double) to every element of a floating-point operand.
template <class F>
void map_float(kernel_context& c, F f) {
  visit_float(c.input(0).type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using compute = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const T* x = c.input(0).as<T>();
    T* y = c.output(0).as<T>();
    parallel_for(c.output(0).size(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        y[i] = static_cast<T>(f(static_cast<compute>(x[i])));
    });
  });
}

void relu(kernel_context& c) {
  // max(x, 0) keeps NaN: the comparison is false for it.
  map_float(c, [](auto x) { return x < 0 ? decltype(x)(0) : x; });
}

/// sigmoid(x) = 1 / (1 + e^-x)
void sigmoid(kernel_context& c) {
  map_float(c, [](auto x) { return 1 / (1 + std::exp(-x)); });
}

constexpr auto table = std::to_array<op_def>({
    {.domain = "", .name = "Relu", .since = 1, .types = types::floats, .alias = aliasing::in_place,
     .layouts = layout_support::agnostic, .infer = infer_same, .reference = relu},
    {.domain = "", .name = "Sigmoid", .since = 1, .types = types::floats, .alias = aliasing::in_place,
     .layouts = layout_support::agnostic, .infer = infer_same, .reference = sigmoid},
});

} // namespace

std::span<const op_def> unary_ops() {
  return table;
}

} // namespace troupe
