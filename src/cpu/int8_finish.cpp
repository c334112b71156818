#include "cpu/int8_finish.hpp"

#include "cpu/fast_functions.hpp"
#include "cpu/int8_product.hpp"
#include "cpu/int8_rows.hpp"
#include "ops/quantization.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace troupe::int8 {
namespace {

/// Results that are computed at a time: they stay in the first-level cache.
constexpr int64_t block = 512;

bool is_byte(dtype type) {
  return type == dtype::uint8 || type == dtype::int8;
}

/// Whether input `i` is absent, or of `type` with one element or `count`.
bool fits(const kernel_request& r, size_t i, dtype type, int64_t count) {
  if (!r.has_input(i))
    return true;
  const operand& o = r.inputs[i];
  return o.type == type && (o.size() == 1 || o.size() == count);
}

size_t elements(const kernel_request& r, size_t i) {
  return r.has_input(i) ? static_cast<size_t>(r.inputs[i].size()) : 0;
}

/// Returns a zero point among unsigned (`flip` for int8 A) or signed (`flip` for uint8 B) elements.
int32_t moved_zero(const void* zeros, size_t i, dtype type, bool is_unsigned) {
  const int32_t zero =
      type == dtype::uint8 ? static_cast<const uint8_t*>(zeros)[i] : static_cast<const int8_t*>(zeros)[i];
  if (is_unsigned)
    return type == dtype::int8 ? zero + 128 : zero;
  return type == dtype::uint8 ? zero - 128 : zero;
}

} // namespace

operand_positions positions_of(const node& call) {
  if (call.op_type == "QLinearConv")
    return {0, 3, 2, 5, 1, 4, 8, SIZE_MAX, 6, 7};
  if (call.op_type == "QLinearMatMul")
    return {0, 3, 2, 5, 1, 4, SIZE_MAX, SIZE_MAX, 6, 7};
  if (call.domain == "troupe")
    return {0, 1, 4, 5, 2, 3, SIZE_MAX, 6, 7, 8, 9};
  return {};
}

bool finish::takes(const kernel_request& r, const operand_positions& at, int64_t columns) {
  const dtype a = r.inputs[at.a].type, b = r.inputs[at.b].type, y = r.outputs[0].type;
  const bool scaled = at.a_scale != SIZE_MAX, quantised = is_byte(y);
  const bool typed = is_byte(a) && is_byte(b) && (scaled ? quantised || y == dtype::float32 : y == dtype::int32);
  const bool zeros = fits(r, at.a_zero, a, 1) && fits(r, at.b_zero, b, columns);
  const bool scales = fits(r, at.a_scale, dtype::float32, 1) && fits(r, at.b_scale, dtype::float32, columns);
  const bool biases =
      (!r.has_input(at.bias) || (r.inputs[at.bias].type == dtype::float32 && r.inputs[at.bias].size() == columns)) &&
      (!r.has_input(at.integer_bias) ||
       (r.inputs[at.integer_bias].type == dtype::int32 && r.inputs[at.integer_bias].size() == columns));
  const bool result =
      !quantised || (r.has_input(at.y_scale) && fits(r, at.y_scale, dtype::float32, 1) && fits(r, at.y_zero, y, 1));
  return typed && zeros && scales && biases && result && !r.has_input(at.residual);
}

finish::finish(const kernel_request& r, const operand_positions& at, int64_t columns, int64_t depth)
    : at_(at), a_type_(r.inputs[at.a].type), b_type_(r.inputs[at.b].type), columns_(columns), depth_(depth),
      type_(r.outputs[0].type) {
  if (r.call.domain == "troupe")
    act_ = parse_activation(r.call.attrs);
  constexpr float infinity = std::numeric_limits<float>::infinity();
  low_ = act_.code == scalar_code::relu ? 0 : act_.code == scalar_code::clip ? act_.alpha : -infinity;
  high_ = act_.code == scalar_code::clip ? act_.beta : infinity;
  is_clamp_ = act_.code == scalar_code::same || act_.code == scalar_code::relu || act_.code == scalar_code::clip;
  a_flip_ = a_type_ == dtype::int8 ? sign_bit : 0;
  b_flip_ = b_type_ == dtype::uint8 ? sign_bit : 0;
  for (size_t* i : {&at_.a_zero, &at_.b_zero, &at_.integer_bias, &at_.bias, &at_.y_scale, &at_.y_zero})
    if (!r.has_input(*i))
      *i = SIZE_MAX;
  for (const size_t i :
       {at_.a_zero, at_.b_zero, at_.a_scale, at_.b_scale, at_.integer_bias, at_.bias, at_.y_scale, at_.y_zero})
    is_constant_ &= i == SIZE_MAX || !r.has_input(i) || r.inputs[i].constant;
  b_scales_ = elements(r, at_.b_scale);
  b_zeros_ = elements(r, at_.b_zero);
  const auto size = static_cast<size_t>(columns);
  b_zero_.resize(size);
  correction_.resize(size + spare_columns);
  if (at_.a_scale != SIZE_MAX)
    scale_.resize(size + spare_columns);
}

bool finish::bind(const kernel_run& r, const int32_t* column_sums) {
  if (is_bound_)
    return false;
  is_bound_ = is_constant_;
  a_zero_ = static_cast<uint8_t>(at_.a_zero != SIZE_MAX ? moved_zero(r.in[at_.a_zero], 0, a_type_, true) : a_flip_);
  wants_row_sums_ = false;
  for (size_t i = 0; i < b_zero_.size(); ++i) {
    b_zero_[i] = b_zeros_ ? moved_zero(r.in[at_.b_zero], b_zeros_ == 1 ? 0 : i, b_type_, false) : b_flip_ ? -128 : 0;
    wants_row_sums_ |= b_zero_[i] != 0;
  }
  integer_bias_.assign(b_zero_.size(), 0);
  if (at_.integer_bias != SIZE_MAX)
    std::copy_n(r.input<int32_t>(at_.integer_bias), columns_, integer_bias_.data());
  correct_for(column_sums);
  if (!scale_.empty())
    bind_scales(r);
  return true;
}

void finish::bind_scales(const kernel_run& r) {
  const float *b_scale = r.input<float>(at_.b_scale), a_scale = *r.input<float>(at_.a_scale);
  const bool is_quantised = type_ != dtype::float32, is_linear = at_.bias == SIZE_MAX && act_.code == scalar_code::same;
  // ONNX's own operators scale once, by a_scale · b_scale / y_scale; fused ones divide at their end, as the nodes do
  // that they replace.
  const bool scales_once = is_quantised && at_.b == 3 && is_linear;
  const float y_scale = is_quantised ? *r.input<float>(at_.y_scale) : 1.f;
  const float divisor = scales_once ? y_scale : 1.f;
  for (size_t i = 0; i < b_zero_.size(); ++i)
    scale_[i] = a_scale * b_scale[b_scales_ == 1 ? 0 : i] / divisor;
  y_scale_ = scales_once ? 1.f : y_scale;
  if (at_.bias != SIZE_MAX)
    offset_.assign(r.input<float>(at_.bias), r.input<float>(at_.bias) + columns_);
  if (is_quantised)
    offset_.resize(scale_.size(), 0.f);
  is_bounded_ = stays_bounded(is_quantised ? most_rounded : std::numeric_limits<float>::max());
  y_zero_ = 0;
  if (at_.y_zero != SIZE_MAX)
    y_zero_ = type_ == dtype::uint8 ? static_cast<float>(*r.input<uint8_t>(at_.y_zero))
                                    : static_cast<float>(*r.input<int8_t>(at_.y_zero));
}

/// Without this a result may be NaN, which activations keep and limits of bytes do not, or no integer.
bool finish::stays_bounded(double most) const {
  constexpr double largest_product = 255 * 255, largest_sum = 2147483648.0; // where it wraps
  double sum = largest_product * static_cast<double>(depth_);
  for (const int32_t bias : integer_bias_)
    sum = std::max(sum, largest_product * static_cast<double>(depth_) + std::abs(static_cast<double>(bias)));
  sum = std::min(sum, largest_sum);
  for (size_t i = 0; i < scale_.size(); ++i) {
    const double offset = i < offset_.size() ? std::abs(static_cast<double>(offset_[i])) : 0;
    if (!((std::abs(static_cast<double>(scale_[i])) * sum + offset) / static_cast<double>(y_scale_) <= most))
      return false;
  }
  return true;
}

void finish::correct_for(const int32_t* column_sums) {
  const auto zero = static_cast<uint32_t>(a_zero_), depth = static_cast<uint32_t>(depth_);
  for (size_t i = 0; i < b_zero_.size(); ++i) {
    const uint32_t centred = static_cast<uint32_t>(column_sums[i]) - depth * static_cast<uint32_t>(b_zero_[i]);
    correction_[i] = static_cast<int32_t>(static_cast<uint32_t>(integer_bias_[i]) - zero * centred);
  }
}

template <class T>
void finish::quantize(const float* x, int64_t count, T* y) const {
  const quantized_range range = range_of(dtype_of<T>);
  const float scale = y_scale_, zero = y_zero_;
#pragma omp simd
  for (int64_t i = 0; i < count; ++i)
    y[i] = static_cast<T>(static_cast<int32_t>(saturated(x[i] / scale, zero, range)));
}

void finish::apply_block(const int32_t* sums, int32_t row_sum, int64_t first, int64_t count, void* y) const {
  std::array<int32_t, block> whole;
  const auto factor = static_cast<uint32_t>(wants_row_sums_ ? row_sum : 0);
  const int32_t *correction = correction_.data() + first, *zero = b_zero_.data() + first;
  int32_t* corrected = type_ == dtype::int32 ? static_cast<int32_t*>(y) : whole.data();
#pragma omp simd
  for (int64_t i = 0; i < count; ++i)
    corrected[i] = static_cast<int32_t>(static_cast<uint32_t>(sums[i]) + static_cast<uint32_t>(correction[i]) -
                                        factor * static_cast<uint32_t>(zero[i]));
  if (type_ == dtype::int32)
    return;
  std::array<float, block> numbers;
  float* real = type_ == dtype::float32 ? static_cast<float*>(y) : numbers.data();
  const float* scale = scale_.data() + first;
#pragma omp simd
  for (int64_t i = 0; i < count; ++i)
    real[i] = static_cast<float>(corrected[i]) * scale[i];
  if (!offset_.empty())
    for (int64_t i = 0; i < count; ++i)
      real[i] += offset_[static_cast<size_t>(first + i)];
  if (act_.code != scalar_code::same)
    fast::activate(act_, real, real, count);
  if (type_ == dtype::uint8)
    quantize(real, count, static_cast<uint8_t*>(y));
  else if (type_ == dtype::int8)
    quantize(real, count, static_cast<int8_t*>(y));
}

bool finish::is_simple() const {
  const bool is_ordinary = y_scale_ > 1e-20f && y_scale_ < 1e20f; // no number under way is subnormal or infinite
  return can_finish_rows() && !scale_.empty() && is_clamp_ && is_bounded_ && is_ordinary;
}

/// The activation's limits become limits of the bytes: rounding keeps order.
quantised_end finish::end() const {
  const quantized_range range = range_of(type_);
  const auto limit = [&](float x) { return static_cast<int32_t>(saturated(x / y_scale_, y_zero_, range)); };
  return {.scale = y_scale_,
          .inverse = 1.f / y_scale_,
          .zero = static_cast<int32_t>(y_zero_),
          .least = limit(low_),
          .most = limit(high_)};
}

byte_end finish::bytes(int64_t first) const {
  return {correction_.data() + first, scale_.data() + first, offset_.data() + first, end(), type_ == dtype::int8};
}

void finish::apply_together(const rows& r, int64_t first, int64_t count) const {
  const bool is_quantised = type_ != dtype::float32;
  finish_rows({r.sums, r.step, r.count, count, wants_row_sums_ ? r.row_sums : nullptr, correction_.data() + first,
               b_zero_.data() + first, scale_.data() + first, offset_.empty() ? nullptr : offset_.data() + first,
               is_quantised, is_quantised ? end() : quantised_end{}, low_, high_, r.y, r.y_step});
}

void finish::apply(const rows& r, int64_t first, int64_t count) const {
  if (is_simple())
    return apply_together(r, first, count);
  for (int64_t row = 0; row < r.count; ++row)
    for (int64_t i = 0; i < count; i += block)
      apply_block(r.sums + row * r.step + i, wants_row_sums_ ? r.row_sums[row] : 0, first + i,
                  std::min(block, count - i), static_cast<std::byte*>(r.y) + row * r.y_step + i * bytes_each());
}

} // namespace troupe::int8
