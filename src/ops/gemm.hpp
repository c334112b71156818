// Matrix product on the host: the inner loop of every reference kernel that multiplies.
#pragma once

#include <cstdint>
#include <vector>

namespace troupe {

/// C += A · B for row-major A [m × k], B [k × n], C [m × n] with leading dimensions `lda`, `ldb`, `ldc` (elements from
/// one row to the next). T is float, double, uint32_t or uint64_t (signed integers are the same arithmetic modulo
/// 2^bits). Sums run over k in order; several threads share the rows or columns unless the caller is in a parallel
/// region.
template <class T>
void gemm(int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb, T* c, int64_t ldc);

/// Returns the transpose of a row-major [rows × columns] matrix.
template <class T>
std::vector<T> transposed(const T* matrix, int64_t rows, int64_t columns);

} // namespace troupe
