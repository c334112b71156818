// What comes after a product of bytes: corrections for the zero points, scales, bias, activation, and the type of the
// result.
//
//   Σ (a − a_zero) (b − b_zero) = Σ a b − b_zero Σ a − a_zero (Σ b − depth · b_zero), modulo 2^32
//   y = act(float(sum + integer bias) · scale + offset)
//   quantised: saturate(⌊y / y_scale⌉ + y_zero), halves to even
#pragma once

#include "cpu/int8_rows.hpp"
#include "cpu/kernel.hpp"
#include "ops/activation.hpp"

namespace troupe::int8 {

/// Where the operands of a quantised product or convolution stand among its inputs; SIZE_MAX: it has none. Without
/// scales the results are the sums.
struct operand_positions {
  size_t a = 0, b = 1, a_zero = 2, b_zero = 3;
  size_t a_scale = SIZE_MAX, b_scale = SIZE_MAX;
  size_t integer_bias = SIZE_MAX, bias = SIZE_MAX;
  size_t y_scale = SIZE_MAX, y_zero = SIZE_MAX;
  size_t residual = SIZE_MAX; // of a sum that follows: int8_sum.cpp
};

/// Returns the positions for the call's operator: MatMulInteger, ConvInteger, QLinearMatMul, QLinearConv,
/// troupe.QuantizedMatMul and troupe.QuantizedConv.
operand_positions positions_of(const node& call);

/// The end of one call. Prepared once, bound to the operands' elements at each run, then used by several threads.
class finish {
public:
  /// Returns whether scales and zero points have the types and sizes that this takes: one of each for A and the result,
  /// one or `columns` of each for B.
  static bool takes(const kernel_request& r, const operand_positions& at, int64_t columns);

  /// `depth` is the number of products in a sum.
  finish(const kernel_request& r, const operand_positions& at, int64_t columns, int64_t depth);

  /// B's elements are centred: its zero point has been taken off.
  void take_centred_b() {
    b_zeros_ = 0;
    b_flip_ = 0;
  }

  /// Reads scales and zero points, unless it has and they are constants; `column_sums` are those of the packed B, of
  /// one matrix. Returns whether it read them.
  bool bind(const kernel_run& r, const int32_t* column_sums);
  /// Corrects for other column sums: of the next matrix of a batch.
  void correct_for(const int32_t* column_sums);

  /// Returns A's zero point among its packed (unsigned) elements.
  uint8_t a_zero() const { return a_zero_; }
  /// What A's and B's elements are XORed with when they are packed.
  uint8_t a_flip() const { return a_flip_; }
  uint8_t b_flip() const { return b_flip_; }
  /// Returns whether `apply` wants Σ a of each row.
  bool wants_row_sums() const { return wants_row_sums_; }
  /// Returns the number of products in a sum.
  int64_t depth() const { return depth_; }
  int64_t bytes_each() const { return bytes_of(type_, 1); }

  /// Rows of sums of columns [first, first + count), and where their results go: the place of column `first`.
  struct rows {
    const int32_t* sums;
    int64_t step, count;
    const int32_t* row_sums; // read if `wants_row_sums`
    void* y;
    int64_t y_step; // bytes
  };
  void apply(const rows& r, int64_t first, int64_t count) const;

  /// Returns whether all of it is what `bytes` says, once bound.
  bool is_bytes() const { return is_simple() && type_ != dtype::float32 && !wants_row_sums_; }
  byte_end bytes(int64_t first) const;

private:
  void bind_scales(const kernel_run& r);
  /// Returns whether no result, over its scale, is larger than `most` in magnitude, or no number.
  bool stays_bounded(double most) const;
  /// Returns whether int8_rows.hpp does all of it.
  bool is_simple() const;
  quantised_end end() const;
  void apply_together(const rows& r, int64_t first, int64_t count) const;
  void apply_block(const int32_t* sums, int32_t row_sum, int64_t first, int64_t count, void* y) const;
  template <class T>
  void quantize(const float* x, int64_t count, T* y) const;

  operand_positions at_;
  dtype a_type_, b_type_;
  int64_t columns_, depth_;
  dtype type_;
  activation act_;
  uint8_t a_flip_, b_flip_, a_zero_ = 0;
  bool wants_row_sums_ = false, is_constant_ = true, is_bound_ = false;
  size_t b_scales_ = 0, b_zeros_ = 0; // elements; 0 if there are none
  std::vector<int32_t> b_zero_, integer_bias_;
  std::vector<int32_t> correction_;   // as the next, with `spare_columns`
  std::vector<float> scale_, offset_; // offset_: empty for 0, unless results are bytes
  float y_scale_ = 1, y_zero_ = 0;
  float low_, high_; // limits of the real results, if the activation is no more than these
  bool is_clamp_;
  bool is_bounded_ = true; // results, over their scale
};

} // namespace troupe::int8
