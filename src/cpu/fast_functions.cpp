#include "cpu/fast_functions.hpp"

#include "cpu/vector_math.hpp"

#include <limits>

namespace troupe::fast {
namespace {

template <class F>
void map(const float* x, float* y, int64_t count, F f) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i)
    y[i] = f(x[i]);
}

float clamped(float x, float low, float high) {
  const float raised = x < low ? low : x;
  return raised > high ? high : raised;
}

} // namespace

void activate(const activation& act, const float* x, float* y, int64_t count) {
  const float alpha = act.alpha, beta = act.beta;
  switch (act.kind) {
    case activation_kind::none: return map(x, y, count, [](float v) { return v; });
    case activation_kind::relu: return map(x, y, count, [](float v) { return v < 0 ? 0.f : v; });
    case activation_kind::clip: return map(x, y, count, [=](float v) { return clamped(v, alpha, beta); });
    case activation_kind::sigmoid: return map(x, y, count, [](float v) { return sigmoid(v); });
    case activation_kind::tanh: return map(x, y, count, [](float v) { return fast::tanh(v); });
    case activation_kind::hard_swish:
      return map(x, y, count, [](float v) { return v * clamped(v * (1.f / 6) + 0.5f, 0.f, 1.f); });
    case activation_kind::hard_sigmoid:
      return map(x, y, count, [=](float v) { return clamped(alpha * v + beta, 0.f, 1.f); });
    case activation_kind::leaky_relu: return map(x, y, count, [=](float v) { return v < 0 ? alpha * v : v; });
    case activation_kind::swish: return map(x, y, count, [=](float v) { return v * sigmoid(alpha * v); });
    case activation_kind::gelu:
      return map(x, y, count, [](float v) { return 0.5f * v * (1.f + fast::erf(v * 0.70710678118654752f)); });
    case activation_kind::gelu_tanh:
      return map(x, y, count, [](float v) {
        return 0.5f * v * (1.f + fast::tanh(0.79788456080286536f * (v + 0.044715f * v * v * v)));
      });
  }
}

float maximum(const float* x, int64_t count) {
  float top = -std::numeric_limits<float>::infinity();
#pragma omp simd reduction(max : top)
  for (int64_t i = 0; i < count; ++i)
    top = x[i] > top ? x[i] : top;
  return top;
}

float sum(const float* x, int64_t count) {
  float total = 0;
#pragma omp simd reduction(+ : total)
  for (int64_t i = 0; i < count; ++i)
    total += x[i];
  return total;
}

float dot(const float* a, const float* b, int64_t count) {
  float total = 0;
#pragma omp simd reduction(+ : total)
  for (int64_t i = 0; i < count; ++i)
    total += a[i] * b[i];
  return total;
}

void softmax_row(float* x, int64_t count) {
  const float top = maximum(x, count);
  float total = 0;
#pragma omp simd reduction(+ : total)
  for (int64_t i = 0; i < count; ++i) {
    const float e = fast::exp(x[i] - top);
    x[i] = e;
    total += e;
  }
  const float factor = 1.f / total;
#pragma omp simd
  for (int64_t i = 0; i < count; ++i)
    x[i] *= factor;
}

} // namespace troupe::fast
