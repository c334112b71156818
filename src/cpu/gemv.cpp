// Matrix products with few rows, as in the decode step of a language model: Y = act(alpha · A · B + bias + residual), M
// ≤ 4.
//
// Such a product is bound by reading B once from memory, so B is used as it is (in the mapped model file, where it is a
// weight) and nothing is packed. Row-major B [K, N]: each thread takes rows of B, a few at a time, and adds them,
// scaled by A's elements, to its own sums, which stay in its cache; or columns, if N is large enough to give each
// thread long stretches. Transposed B [N, K]: one dot product an output.
#include "base/parallel.hpp"
#include "cpu/fast_functions.hpp"
#include "cpu/kernels.hpp"
#include "cpu/product.hpp"

#include <cstring>

namespace troupe {
namespace {

constexpr int64_t max_rows = 4;
/// Rows of B that are read together: as many streams as hardware prefetchers follow.
constexpr int64_t row_step = 8;
/// Columns whose sums are kept in the first-level cache.
constexpr int64_t column_block = 2048;
/// Bytes of B below which one thread is faster than waking another.
constexpr int64_t single_thread_bytes = 96 * 1024;

/// sums[m][j] += Σ_i a[m][i] · b[i][j] for `Step` rows of B and `columns` columns; M rows of A.
template <int M, int64_t Step>
void add_rows(const float* a, int64_t lda, const float* b, int64_t ldb, int64_t columns, float* sums, int64_t lds) {
  for (int64_t j = 0; j < columns; ++j) {
    float x[Step];
    for (int64_t i = 0; i < Step; ++i)
      x[i] = b[i * ldb + j];
    for (int m = 0; m < M; ++m) {
      float sum = sums[m * lds + j];
      for (int64_t i = 0; i < Step; ++i)
        sum += a[m * lda + i] * x[i];
      sums[m * lds + j] = sum;
    }
  }
}

/// sums += A[:, k0..k1) · B[k0..k1), columns [n0, n1)
template <int M>
void multiply_part(const float* a, int64_t lda, const float* b, int64_t ldb, int64_t k0, int64_t k1, int64_t n0,
                   int64_t n1, float* sums, int64_t lds) {
  for (int64_t j = n0; j < n1; j += column_block) {
    const int64_t columns = std::min(column_block, n1 - j);
    int64_t i = k0;
    for (; i + row_step <= k1; i += row_step)
      add_rows<M, row_step>(a + i, lda, b + i * ldb + j, ldb, columns, sums + j, lds);
    for (; i < k1; ++i)
      add_rows<M, 1>(a + i, lda, b + i * ldb + j, ldb, columns, sums + j, lds);
  }
}

/// Σ a[i] · b[i] in 32 partial sums.
float dot(const float* a, const float* b, int64_t count) {
  constexpr int64_t lanes = 32;
  float sums[lanes] = {};
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    for (int64_t l = 0; l < lanes; ++l)
      sums[l] += a[i + l] * b[i + l];
  float total = 0;
  for (; i < count; ++i)
    total += a[i] * b[i];
  for (int64_t l = 0; l < lanes; ++l)
    total += sums[l];
  return total;
}

class gemv_kernel final : public kernel {
public:
  gemv_kernel(const kernel_request& r, const product_call& p) : p_(p), scratch_(r.resources.scratch) {
    const int64_t bytes = p.k * p.n * int64_t{sizeof(float)};
    threads_ = bytes <= single_thread_bytes ? 1 : thread_count();
    // A thread that takes columns jumps from row to row; one that takes rows reads on, but its sums must be added up.
    split_rows_ = !p.trans_b && threads_ > 1 && p.n <= 4096 && p.k >= 2 * row_step * threads_;
    if (split_rows_)
      scratch_.reserve(threads_ * p.m * p.n * int64_t{sizeof(float)});
  }

  void run(const kernel_run& r) override {
    const float *a = r.input<float>(0), *b = r.input<float>(1);
    float* y = r.output<float>(0);
    if (p_.trans_b)
      by_dot_products(r, a, b, y);
    else if (split_rows_)
      by_rows(r, a, b, y);
    else
      by_columns(r, a, b, y);
  }

private:
  void multiply(const float* a, const float* b, int64_t k0, int64_t k1, int64_t n0, int64_t n1, float* sums) const {
    switch (p_.m) {
      case 1: return multiply_part<1>(a, p_.k, b, p_.n, k0, k1, n0, n1, sums, p_.n);
      case 2: return multiply_part<2>(a, p_.k, b, p_.n, k0, k1, n0, n1, sums, p_.n);
      case 3: return multiply_part<3>(a, p_.k, b, p_.n, k0, k1, n0, n1, sums, p_.n);
      default: return multiply_part<4>(a, p_.k, b, p_.n, k0, k1, n0, n1, sums, p_.n);
    }
  }

  /// Epilogue of columns [n0, n1): y holds the sums.
  void finish(const kernel_run& r, float* y, int64_t n0, int64_t n1) const {
    const float* bias = p_.bias == SIZE_MAX ? nullptr : r.input<float>(p_.bias);
    const float* residual = p_.residual == SIZE_MAX ? nullptr : r.input<float>(p_.residual);
    for (int64_t m = 0; m < p_.m; ++m) {
      float* line = y + m * p_.n;
      if (p_.alpha != 1)
        for (int64_t j = n0; j < n1; ++j)
          line[j] *= p_.alpha;
      if (bias)
        for (int64_t j = n0; j < n1; ++j)
          line[j] += bias[j];
      if (residual)
        for (int64_t j = n0; j < n1; ++j)
          line[j] += residual[m * p_.n + j];
      if (p_.act.code != scalar_code::same)
        fast::activate(p_.act, line + n0, line + n0, n1 - n0);
    }
  }

  int64_t grain(int64_t count) const { return (count + threads_ - 1) / threads_; }

  void by_columns(const kernel_run& r, const float* a, const float* b, float* y) const {
    // Whole cache lines, so that threads do not share one.
    const int64_t lines = (p_.n + 15) / 16;
    parallel_for(lines, grain(lines), [&](int64_t begin, int64_t end) {
      const int64_t n0 = begin * 16, n1 = std::min(end * 16, p_.n);
      for (int64_t m = 0; m < p_.m; ++m)
        std::fill(y + m * p_.n + n0, y + m * p_.n + n1, 0.f);
      multiply(a, b, 0, p_.k, n0, n1, y);
      finish(r, y, n0, n1);
    });
  }

  void by_rows(const kernel_run& r, const float* a, const float* b, float* y) const {
    auto* parts = static_cast<float*>(scratch_.data());
    const int64_t size = p_.m * p_.n, rows = (p_.k + threads_ - 1) / threads_;
    parallel_for(threads_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        std::fill_n(parts + t * size, size, 0.f);
        multiply(a, b, t * rows, std::min(p_.k, (t + 1) * rows), 0, p_.n, parts + t * size);
      }
    });
    std::memcpy(y, parts, static_cast<size_t>(size) * sizeof(float));
    for (int64_t t = 1; t < threads_; ++t)
      for (int64_t i = 0; i < size; ++i)
        y[i] += parts[t * size + i];
    finish(r, y, 0, p_.n);
  }

  void by_dot_products(const kernel_run& r, const float* a, const float* b, float* y) const {
    parallel_for(p_.n, grain(p_.n), [&](int64_t begin, int64_t end) {
      for (int64_t j = begin; j < end; ++j)
        for (int64_t m = 0; m < p_.m; ++m)
          y[m * p_.n + j] = dot(a + m * p_.k, b + j * p_.k, p_.k);
      finish(r, y, begin, end);
    });
  }

  const product_call p_;
  scratch_buffer& scratch_;
  int64_t threads_ = 1;
  bool split_rows_ = false;
};

} // namespace

kernel_ptr make_gemv(const kernel_request& r) {
  const auto p = parse_product(r);
  if (!p || p->m > max_rows || p->trans_a || !p->batch.empty() || !p->single_b())
    return nullptr;
  return std::make_unique<gemv_kernel>(r, *p);
}

} // namespace troupe
