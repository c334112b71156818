// GatherBlockQuantized of com.microsoft: slices of a quantised table, as Gather has them, in real numbers.
//
//   y = (data − zero point) · scale, where block_size neighbours along quantize_axis share a scale and a zero point
// data is int4, uint4, a float of 8 or 4 bits, or uint8: numbers of 2 or 4 bits packed along the last axis, low bits
// first, or of 8 bits. Zero points are like data, packed likewise; without them they are 0, of uint8 the middle of the
// range. An index outside of the table gives zeros. A scale's dim of 1 counts for the whole axis, and so does a block
// size of 0.
#include "ops/axes.hpp"
#include "ops/expansion.hpp"
#include "ops/operand.hpp"
#include "ops/quantization.hpp"

namespace troupe {
namespace {

constexpr dtype_set tables = types::small_floats | set_of(dtype::int4, dtype::uint4, dtype::uint8);

/// How a table is laid out, in elements.
struct block_table {
  size_t gather_axis, quantize_axis;
  int64_t block, bits; // bits of a uint8's numbers; 8 for other types

  /// Numbers that a stored element holds along the last axis.
  int64_t packed() const { return 8 / bits; }
};

block_table parse_table(const attributes& attrs, dtype type, size_t rank) {
  block_table t{normalize_axis(attrs.integer("gather_axis", 0), rank),
                normalize_axis(attrs.integer("quantize_axis", 1), rank), attrs.integer("block_size", 128),
                type == dtype::uint8 ? attrs.integer("bits", 4) : 8};
  const bool power_of_two = t.block > 0 && (t.block & (t.block - 1)) == 0;
  if (!(power_of_two && t.block >= 16) && !(t.block == 0 && is_small_float(type)))
    fail(errc::invalid_model, "attribute 'block_size' is {}, not a power of two from 16 on", t.block);
  if (t.bits != 2 && t.bits != 4 && t.bits != 8)
    fail(errc::invalid_model, "attribute 'bits' is {}, not 2, 4 or 8", t.bits);
  if (t.packed() > 1 && t.gather_axis + 1 == rank)
    fail(errc::unsupported, "numbers that are packed along the axis that is gathered on are not supported");
  return t;
}

void infer_gather_blocks(infer_context& c) {
  symbolic_shape data = c.dims(0);
  const block_table t = parse_table(c.attrs(), c.type(0), data.size());
  if (!(types::integers & set_of(c.type(1))) || !(types::floats & set_of(c.type(2))))
    fail(errc::invalid_model, "indices of {} and scales of {} are not supported", to_string(c.type(1)),
         to_string(c.type(2)));
  if (c.has_input(3) && c.type(3) != c.type(0))
    fail(errc::invalid_model, "zero points of {} for a table of {}", to_string(c.type(3)), to_string(c.type(0)));
  data.back() = data.back() * t.packed();
  const symbolic_shape& indices = c.dims(1);
  const auto at = data.begin() + static_cast<ptrdiff_t>(t.gather_axis);
  data.insert(data.erase(at), indices.begin(), indices.end());
  c.set_output(0, c.type(2), std::move(data));
}

/// Returns all numbers of a packed tensor, a float each.
tensor numbers_of(const const_view& v, int64_t bits) {
  if (v.type != dtype::uint8 || bits == 8)
    return converted<float>(v);
  shape dims(v.dims.begin(), v.dims.end());
  dims.back() *= 8 / bits;
  const int64_t packed = 8 / bits;
  tensor numbers(dtype::float32, dims);
  for (int64_t i = 0; i < numbers.size(); ++i)
    numbers.mutable_data<float>()[i] =
        static_cast<float>(v.as<uint8_t>()[i / packed] >> (i % packed * bits) & ((1 << bits) - 1));
  return numbers;
}

/// The scales and zero points of a table of these dims.
struct block_scales {
  tensor scales, zeros; // zeros undefined: `zero` for all
  float zero;
  std::vector<int64_t> steps; // from one block, or place, of an axis to the next
  int64_t zero_columns;       // of a row of zero points, which packing fills up

  block_scales(const kernel_context& c, const block_table& t, const shape& dims)
      : scales(converted<float>(c.input(2))),
        zero(c.input(0).type == dtype::uint8 ? static_cast<float>(1 << (t.bits - 1)) : 0),
        steps(broadcast_strides(c.input(2).dims, c.input(2).dims)) {
    const auto found = c.input(2).dims;
    const bool may_broadcast = is_small_float(c.input(0).type);
    bool fits = found.size() == dims.size();
    for (size_t i = 0; fits && i < dims.size(); ++i) {
      const bool blocked = i == t.quantize_axis;
      const int64_t blocks = t.block == 0 ? 1 : dims[i] / t.block + (dims[i] % t.block != 0);
      fits = found[i] == (blocked ? blocks : dims[i]) || (may_broadcast && !blocked && found[i] == 1);
      if (found[i] == 1)
        steps[i] = 0;
    }
    if (!fits)
      fail(errc::invalid_input, "scales of shape {} do not fit a table of {}", to_string(found), to_string(dims));
    zero_columns = found.back();
    if (!c.has_input(3))
      return;
    if (c.input(3).dims.size() != found.size())
      fail(errc::invalid_input, "zero points of shape {} do not fit scales of {}", to_string(c.input(3).dims),
           to_string(found));
    zeros = numbers_of(c.input(3), t.bits);
    zero_columns = zeros.dims().back();
    if (zero_columns < found.back() ||
        zeros.size() / std::max<int64_t>(1, zero_columns) != scales.size() / std::max<int64_t>(1, found.back()))
      fail(errc::invalid_input, "zero points of shape {} do not fit scales of {}", to_string(c.input(3).dims),
           to_string(found));
  }

  float zero_at(int64_t at) const {
    const int64_t columns = scales.dims().back();
    return zeros.defined() ? zeros.data<float>()[at / columns * zero_columns + at % columns] : zero;
  }
};

/// Writes `count` numbers from `first` on, in the order of the table.
class row_reader {
public:
  row_reader(const kernel_context& c, const block_table& t, const shape& dims)
      : data_(c.input(0)), t_(t), dims_(dims), s_(c, t, dims) {}

  template <class T>
  void read(int64_t first, int64_t count, T* to) const {
    if (count == 0)
      return;
    shape at(dims_.size());
    for (size_t i = dims_.size(), rest = static_cast<size_t>(first); i-- > 0; rest /= static_cast<size_t>(dims_[i]))
      at[i] = static_cast<int64_t>(rest) % dims_[i];
    for (int64_t k = 0; k < count; ++k) {
      int64_t scale = 0;
      for (size_t i = 0; i < at.size(); ++i)
        scale += s_.steps[i] * (i == t_.quantize_axis && t_.block > 0 ? at[i] / t_.block : at[i]);
      to[k] = static_cast<T>((number(first + k) - s_.zero_at(scale)) * s_.scales.template data<float>()[scale]);
      for (size_t i = at.size(); i-- > 0 && ++at[i] == dims_[i];)
        at[i] = 0;
    }
  }

private:
  float number(int64_t i) const {
    const auto* bytes = data_.as<uint8_t>();
    const int64_t width = data_.type == dtype::uint8 ? t_.bits : bits_of(data_.type), in_byte = 8 / width;
    const auto code = static_cast<uint8_t>(bytes[i / in_byte] >> (i % in_byte * width) & ((1 << width) - 1));
    if (is_small_float(data_.type))
      return decode_small_float(data_.type, code);
    return static_cast<float>(data_.type == dtype::int4 && code > 7 ? code - 16 : code);
  }

  const_view data_;
  block_table t_;
  shape dims_;
  block_scales s_;
};

void gather_blocks(kernel_context& c) {
  const block_table t = parse_table(c.attrs(), c.input(0).type, c.input(0).dims.size());
  shape dims(c.input(0).dims.begin(), c.input(0).dims.end());
  dims.back() *= t.packed();
  const row_reader reader(c, t, dims);
  const auto indices = to_int64(c.input(1));
  const std::span<const int64_t> all(dims);
  const int64_t outer = volume(all.first(t.gather_axis)), inner = volume(all.subspan(t.gather_axis + 1)),
                size = dims[t.gather_axis], count = std::ssize(indices);
  visit_float(c.output(0).type, [&]<class T>(type_tag<T>) {
    parallel_for(outer * count, std::max<int64_t>(1, 4096 / (inner + 1)), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        T* to = c.output(0).as<T>() + i * inner;
        int64_t index = indices[static_cast<size_t>(i % count)];
        index = index < 0 ? index + size : index;
        if (index < 0 || index >= size)
          std::fill_n(to, inner, static_cast<T>(0.f));
        else
          reader.read((i / count * size + index) * inner, inner, to);
      }
    });
  });
}

void gather_block_axes(call_axes& a) {
  const block_table t = parse_table(a.call().attrs(), a.call().type(0), a.call().rank(0));
  for (size_t axis = 0; axis < a.call().rank(1); ++axis)
    a.map({{1, axis}}, t.gather_axis + axis);
}

constexpr auto gather_block_quantized_rows = std::to_array<op_def>({
    op_row("GatherBlockQuantized", 1, infer_gather_blocks, gather_blocks,
           {.domain = microsoft,
            .inputs = {3, 4},
            .types = tables,
            .axes = gather_block_axes,
            .mixes = "picks elements by their position along"}),
});

} // namespace

extern constinit const op_table contrib_gather_block_quantized_ops = gather_block_quantized_rows;

} // namespace troupe
