#include "cpu/fast_functions.hpp"

#include "cpu/vector_math.hpp"
#include "ops/scalar_formulas.hpp"

#include <limits>

namespace troupe::fast {

void activate(const activation& act, const float* x, float* y, int64_t count) {
  with_formula<vector_math, &ends_products>(act.code, [=](auto f) {
    const float alpha = act.alpha, beta = act.beta;
#pragma omp simd
    for (int64_t i = 0; i < count; ++i)
      y[i] = f(x[i], alpha, beta);
  });
}

void run_step(scalar_code code, const float* a, const float* b, const float* c, float* y, int64_t count) {
  with_formula<vector_math, &takes<float>>(code, [=](auto f) {
#pragma omp simd
    for (int64_t i = 0; i < count; ++i)
      y[i] = f(a[i], b[i], c[i]);
  });
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
