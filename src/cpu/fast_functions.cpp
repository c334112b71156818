#include "cpu/fast_functions.hpp"

#include "cpu/vector_math.hpp"
#include "ops/scalar_formulas.hpp"

#include <algorithm>
#include <limits>

namespace troupe::fast {
namespace {

/// Elements whose sums are floats: the sums of more are added up in double, since errors grow with the number of terms.
constexpr int64_t sum_block = 4096;

/// Returns Σ part(begin, end) over blocks of [0, count).
template <class F>
float sum_of_blocks(int64_t count, F part) {
  double total = 0;
  for (int64_t begin = 0; begin < count; begin += sum_block)
    total += part(begin, std::min(count, begin + sum_block));
  return static_cast<float>(total);
}

} // namespace

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
  return sum_of_blocks(count, [x](int64_t begin, int64_t end) {
    float total = 0;
#pragma omp simd reduction(+ : total)
    for (int64_t i = begin; i < end; ++i)
      total += x[i];
    return total;
  });
}

float sum_of_squares(const float* x, int64_t count, float mean) {
  return sum_of_blocks(count, [x, mean](int64_t begin, int64_t end) {
    float total = 0;
#pragma omp simd reduction(+ : total)
    for (int64_t i = begin; i < end; ++i)
      total += (x[i] - mean) * (x[i] - mean);
    return total;
  });
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
  const float factor = 1.f / sum_of_blocks(count, [x, top](int64_t begin, int64_t end) {
                         float total = 0;
#pragma omp simd reduction(+ : total)
                         for (int64_t i = begin; i < end; ++i) {
                           const float e = fast::exp(x[i] - top);
                           x[i] = e;
                           total += e;
                         }
                         return total;
                       });
#pragma omp simd
  for (int64_t i = 0; i < count; ++i)
    x[i] *= factor;
}

} // namespace troupe::fast
