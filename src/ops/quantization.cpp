#include "ops/quantization.hpp"

#include "base/checked.hpp"
#include "ops/op.hpp"

#include <algorithm>

namespace troupe {
namespace {

constexpr int64_t run_elements = 16 * 1024;

} // namespace

void require_bytes(dtype type) {
  if (!(byte_types & set_of(type)))
    fail(errc::unsupported, "element type {} is not supported", to_string(type));
}

void require_zero_point(const infer_context& c, size_t zero, size_t of) {
  if (c.has_input(zero) && c.type(zero) != c.type(of))
    fail(errc::invalid_model, "a zero point is {}, its operand {}", to_string(c.type(zero)), to_string(c.type(of)));
}

void require_parameter(const infer_context& c, size_t i, std::initializer_list<dim> counts) {
  if (!c.has_input(i) || !c.has_rank(i) || !is_constant(c.dims(i)))
    return;
  const dim size = volume(std::span<const dim>(c.dims(i)));
  const bool fits = size.is(1) || std::any_of(counts.begin(), counts.end(),
                                              [&](const dim& count) { return !count.is_constant() || count == size; });
  if (!fits)
    fail(errc::invalid_model, "scale or zero point {} of shape {} must have one element{}", i, to_string(c.dims(i)),
         counts.size() ? fmt::format(", or {}", counts.begin()->to_string()) : "");
}

quantization_runs::quantization_runs(std::span<const int64_t> dims, std::span<const int64_t> scale, int64_t axis,
                                     int64_t block_size) {
  total_ = volume(dims);
  if (block_size < 0)
    fail(errc::invalid_model, "attribute 'block_size' is {}", block_size);
  if (volume(scale) == 1 && block_size == 0) {
    one_scale_ = true;
    length_ = run_elements;
    count_ = (total_ + run_elements - 1) / run_elements;
    return;
  }
  const size_t at = normalize_axis(axis, dims.size());
  size_ = dims[at];
  inner_ = volume(dims.subspan(at + 1));
  const int64_t outer = volume(dims.first(at));
  shape expected{size_};
  if (block_size > 0) {
    block_ = block_size;
    blocks_ = size_ / block_ + (size_ % block_ != 0);
    expected.assign(dims.begin(), dims.end());
    expected[at] = blocks_;
  }
  if (!std::equal(scale.begin(), scale.end(), expected.begin(), expected.end()))
    fail(errc::invalid_input, "the scale's shape is {}, but axis {} of {} needs {}", to_string(scale), axis,
         to_string(dims), to_string(expected));
  if (inner_ == 1) { // a row of the axis, or one block of it
    count_ = block_ ? checked_mul(outer, blocks_) : outer;
    length_ = block_ ? std::min(block_, size_) : size_;
    step_ = block_ ? 0 : 1;
  } else {
    count_ = checked_mul(outer, size_);
    length_ = inner_;
    step_ = block_ ? 1 : 0;
  }
  if (total_ == 0)
    count_ = 0;
  grain_ = std::max<int64_t>(1, run_elements / std::max<int64_t>(length_, 1));
}

quantization_runs::run quantization_runs::at(int64_t i) const {
  if (one_scale_)
    return {i * length_, std::min(length_, total_ - i * length_), 0};
  if (inner_ == 1 && block_) {
    const int64_t row = i / blocks_, b = i % blocks_;
    return {row * size_ + b * block_, std::min(block_, size_ - b * block_), i};
  }
  if (inner_ == 1)
    return {i * size_, size_, 0};
  const int64_t outer = i / size_, position = i % size_;
  return {i * inner_, inner_, block_ ? (outer * blocks_ + position / block_) * inner_ : position};
}

quantized_range range_of(dtype type) {
  switch (type) {
    case dtype::uint8: return {0, 255};
    case dtype::int8: return {-128, 127};
    case dtype::uint16: return {0, 65535};
    case dtype::int16: return {-32768, 32767};
    case dtype::uint4: return {0, 15};
    case dtype::int4: return {-8, 7};
    case dtype::uint2: return {0, 3};
    case dtype::int2: return {-2, 1};
    default: fail(errc::unsupported, "{} is not a type that is quantised to", to_string(type));
  }
}

} // namespace troupe
