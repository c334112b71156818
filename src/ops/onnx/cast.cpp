// Cast and CastLike (tensor/convert.hpp has the rules), BitCast, and Identity.
#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/infer.hpp"
#include "ops/onnx/elementwise.hpp"
#include "ops/onnx/known.hpp"
#include "ops/strided_copy.hpp"
#include "tensor/convert.hpp"

#include <cstring>

namespace troupe {
namespace {

constexpr dtype_set castable = types::fixed_size | types::string | types::small_floats | types::small_ints;
constexpr dtype_set bit_castable = castable & ~types::string;

/// What becomes of values between and beyond a small float's: attributes `saturate` and, for float8e8m0, `round_mode`.
small_float_rule small_float_rule_of(const attributes& attrs) {
  return {attrs.integer("saturate", 1) != 0,
          word_as<scale_rounding>(attrs, "round_mode", "up", {"up", "down", "nearest"})};
}

void cast(kernel_context& c) {
  convert(c.input(0), c.output(0), small_float_rule_of(c.attrs()));
}

void infer_cast_to(infer_context& c, dtype to) {
  small_float_rule_of(c.attrs());
  if (!(castable & set_of(to)))
    fail(errc::unsupported, "element type {} is not supported", to_string(to));
  c.set_output(0, to, c.dims(0));
  if ((types::integers | types::boolean) & set_of(c.type(0)))
    set_known_unary(c, to, to == dtype::boolean ? known::truth : known::same);
}

void infer_cast(infer_context& c) {
  infer_cast_to(c, dtype_from_onnx(static_cast<int>(c.attrs().integer("to"))));
}

/// Until opset 5 `to` is the type's name in TensorProto.
void infer_cast_1(infer_context& c) {
  static constexpr std::array<std::pair<std::string_view, dtype>, 13> names{{{"FLOAT", dtype::float32},
                                                                             {"UINT8", dtype::uint8},
                                                                             {"INT8", dtype::int8},
                                                                             {"UINT16", dtype::uint16},
                                                                             {"INT16", dtype::int16},
                                                                             {"INT32", dtype::int32},
                                                                             {"INT64", dtype::int64},
                                                                             {"STRING", dtype::string},
                                                                             {"BOOL", dtype::boolean},
                                                                             {"FLOAT16", dtype::float16},
                                                                             {"DOUBLE", dtype::float64},
                                                                             {"UINT32", dtype::uint32},
                                                                             {"UINT64", dtype::uint64}}};
  const std::string to = c.attrs().text("to", "");
  for (const auto& [name, type] : names)
    if (name == to)
      return infer_cast_to(c, type);
  fail(errc::invalid_model, "attribute 'to' is '{}', which is not an element type", to);
}

void infer_cast_like(infer_context& c) {
  infer_cast_to(c, c.type(1));
}

void hand_on(kernel_context& c) {
  if (!c.has_output(0) || c.output(0).data == c.input(0).data)
    return;
  if (is_container(c.input(0).type))
    return copy_all(c.input(0), c.output(0));
  convert(c.input(0), c.output(0));
}

void infer_identity(infer_context& c) {
  infer_same(c);
  if ((types::integers | types::boolean) & set_of(c.type(0)))
    set_known_unary(c, c.type(0), known::same);
}

/// The same bits as another type. Of a boolean any bit that is set makes it true, as everywhere.
void bit_cast(kernel_context& c) {
  const const_view& x = c.input(0);
  const mutable_view& y = c.output(0);
  if (y.type == dtype::boolean)
    map_elements(x.as<uint8_t>(), y.as<uint8_t>(), y.size(), [](uint8_t bits) { return bits != 0; });
  else if (y.data != x.data)
    std::memcpy(y.data, x.data, static_cast<size_t>(y.bytes()));
}

void infer_bit_cast(infer_context& c) {
  const dtype from = c.type(0), to = dtype_from_onnx(static_cast<int>(c.attrs().integer("to")));
  if (!(bit_castable & set_of(to)))
    fail(errc::unsupported, "element type {} is not supported", to_string(to));
  if (bits_of(from) != bits_of(to))
    fail(errc::invalid_model, "{} of {} bits cannot be taken for {} of {}", to_string(from), bits_of(from),
         to_string(to), bits_of(to));
  c.set_output(0, to, c.dims(0));
}

/// Only the type of the second operand counts.
void cast_like_axes(call_axes& a) {
  axes::elements(a);
  a.ignore(1);
}

constexpr op_def cast_row(std::string_view name, int64_t since, uint8_t inputs, void (*infer)(infer_context&)) {
  return op_row(name, since, infer, cast,
                {.inputs = {inputs, inputs},
                 .types = castable,
                 .alias = aliasing::in_place,
                 .layouts = layout_support::agnostic,
                 .converts = true,
                 .repeats = repeats_first,
                 .axes = inputs > 1 ? cast_like_axes : nullptr});
}

constexpr auto cast_rows = std::to_array<op_def>({
    cast_row("Cast", 1, 1, infer_cast_1),
    cast_row("Cast", 6, 1, infer_cast),
    cast_row("CastLike", 15, 2, infer_cast_like),
    op_row("Identity", 1, infer_identity, hand_on,
           {.types = castable | types::containers, .alias = aliasing::view, .layouts = layout_support::agnostic}),
    op_row("BitCast", 26, infer_bit_cast, bit_cast,
           {.types = bit_castable,
            .alias = aliasing::in_place,
            .layouts = layout_support::agnostic,
            .needs_float32 = true, // the bits of a float16 are others
            .repeats = repeats_first}),
});

} // namespace

extern constinit const op_table onnx_cast_ops = cast_rows;

} // namespace troupe
