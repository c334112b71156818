// What the quantised operators share: which scale and zero point an element has, and saturation.
#pragma once

#include "ops/op.hpp"
#include "tensor/convert.hpp"

namespace troupe {

/// A quantised tensor cut into runs of consecutive elements whose scales are consecutive too (step 1) or one (step 0).
/// Granularity follows from the scale's shape: one element for all; one dim of `axis`'s size; or, with `block_size`,
/// the tensor's rank, if each scale serves `block_size` neighbours along `axis`.
class quantization_runs {
public:
  /// Throws `errc::invalid_input` if the scale's shape fits no granularity.
  quantization_runs(std::span<const int64_t> dims, std::span<const int64_t> scale, int64_t axis, int64_t block_size);

  struct run {
    int64_t begin, length, scale;
  };

  int64_t count() const { return count_; }
  int64_t step() const { return step_; }
  run at(int64_t i) const;
  /// Runs a thread should have before another one pays.
  int64_t grain() const { return grain_; }

private:
  int64_t count_ = 0, length_ = 0, step_ = 0, grain_ = 1;
  int64_t total_ = 0;  // elements; the last run of a tensor with one scale may be shorter
  int64_t size_ = 1;   // of the axis
  int64_t inner_ = 1;  // elements after the axis
  int64_t block_ = 0;  // 0: not blocked
  int64_t blocks_ = 0; // along the axis
  bool one_scale_ = false;
};

/// Returns `values`' elements as type T.
template <class T>
tensor converted(const const_view& values) {
  tensor t(dtype_of<T>, shape(values.dims.begin(), values.dims.end()));
  convert(values, t.mutable_ref());
  return t;
}

/// What integer products multiply.
inline constexpr dtype_set byte_types = set_of(dtype::uint8, dtype::int8);
/// Throws `errc::unsupported` for other types.
void require_bytes(dtype type);

/// Throws `errc::invalid_model` if zero point `zero`, where it is there, is of another type than the operand `of` that
/// it is for.
void require_zero_point(const infer_context& c, size_t zero, size_t of);

/// Throws `errc::invalid_model` unless scale or zero point `i`, where it is there, has one element or as many as one of
/// `counts`, as far as numbers tell.
void require_parameter(const infer_context& c, size_t i, std::initializer_list<dim> counts = {});

/// Limits of an integer type that is quantised to, as floats.
struct quantized_range {
  float low, high;
};
/// Throws `errc::unsupported` for types that are not quantised to.
quantized_range range_of(dtype type);

/// Returns ⌊x⌉ + zero limited to the range, halves to even; NaN gives the low end.
inline float saturated(float x, float zero, const quantized_range& range) {
  const float y = std::nearbyint(x) + zero;
  const float raised = y > range.low ? y : range.low;
  return raised < range.high ? raised : range.high;
}

/// How DynamicQuantizeLinear makes codes of 8 bits of numbers from `low` ≤ 0 to `high` ≥ 0: the range holds 0, so that
/// 0 is exact, and zeros alone have scale 1.
class code_range {
public:
  code_range(float low, float high)
      : scale_(high == low ? 1.f : (high - low) / 255.f), zero_(saturated(-low / scale_, 0, bytes)) {}

  float scale() const { return scale_; }
  float zero() const { return zero_; }
  float code(float x) const { return saturated(x / scale_, zero_, bytes); }

private:
  static constexpr quantized_range bytes{0, 255};
  float scale_, zero_;
};

} // namespace troupe
