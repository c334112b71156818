// Elementwise arithmetic of two operands with NumPy broadcasting: y = f(a, b). Until opset 6 the broadcast was limited:
// with attribute `broadcast`, b's dims are a contiguous run of a's that starts at `axis` (by default they are the last
// ones). The formulas are in scalar_formulas.hpp.
#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/infer.hpp"
#include "ops/onnx/elementwise.hpp"
#include "ops/onnx/known.hpp"
#include "ops/onnx/limited_broadcast.hpp"
#include "ops/onnx/require_broadcast.hpp"
#include "ops/scalar_formulas.hpp"

namespace troupe {
namespace {

/// Runs `f` over operands of one type, the second one's dims read as `b`.
template <class F>
void zip_numeric(kernel_context& c, const const_view& b, F f) {
  visit_numeric(c.input(0).type, [&]<class T>(type_tag<T>) { zip<T, T, T>(c.input(0), b, c.output(0), f); });
}

template <scalar_code Code>
void arithmetic(kernel_context& c) {
  zip_numeric(c, c.input(1), scalar_formula<Code>());
}

template <scalar_code Code>
void arithmetic_1(kernel_context& c) {
  const limited_operand b(c);
  zip_numeric(c, b.view(), scalar_formula<Code>());
}

void modulo(kernel_context& c) {
  c.attrs().integer("fmod", 0) != 0 ? arithmetic<scalar_code::truncated_modulo>(c) : arithmetic<scalar_code::modulo>(c);
}

/// Runs a function over operands of one integer type that it takes.
template <scalar_code Code>
void bitwise(kernel_context& c) {
  visit_integer(c.input(0).type, [&]<class T>(type_tag<T>) {
    if constexpr (takes<T>(function_of(Code)))
      zip<T, T, T>(c.input(0), c.input(1), c.output(0), scalar_formula<Code>());
    else
      fail(errc::unsupported, "element type {} cannot be shifted", to_string(dtype_of<T>));
  });
}

bool shifts_left(const attributes& attrs) {
  return word_of(attrs, "direction", "", {"LEFT", "RIGHT"}) == "LEFT";
}

void infer_bit_shift(infer_context& c) {
  shifts_left(c.attrs());
  infer_broadcast(c);
}

void bit_shift(kernel_context& c) {
  shifts_left(c.attrs()) ? bitwise<scalar_code::shift_left>(c) : bitwise<scalar_code::shift_right>(c);
}

/// Until opset 6 a slope of one dim runs along the channels, axis 1.
void prelu_1(kernel_context& c) {
  const const_view& slope = c.input(1);
  const size_t rank = c.input(0).dims.size();
  if (slope.dims.size() != 1 || rank < 2)
    return arithmetic<scalar_code::leaky_relu>(c);
  shape dims(rank, 1);
  dims[1] = slope.dims[0];
  zip_numeric(c, {slope.type, dims, slope.data}, scalar_formula<scalar_code::leaky_relu>());
}

template <known_binary Rule>
void infer_known_binary(infer_context& c) {
  const symbolic_shape dims = broadcast_inputs(c);
  c.set_output(0, common_type(c), dims);
  set_known_binary(c, c.type(0), dims, Rule);
}

/// Adding 0 to a float repeats nothing: it turns -0 into 0.
std::optional<size_t> repeats_sum(const infer_context& c) {
  return types::integers & set_of(c.type(0)) ? repeats_beside<0, true>(c) : std::nullopt;
}

void infer_modulo(infer_context& c) {
  infer_broadcast(c);
  if (c.attrs().integer("fmod", 0) == 0)
    set_known_binary(c, c.type(0), broadcast_inputs(c), known::modulo);
}

/// PRelu's slope broadcasts to the other operand, not the other way round; until opset 6 one of one dim runs along the
/// channels.
void infer_prelu(infer_context& c) {
  const symbolic_shape& x = c.dims(0);
  symbolic_shape slope = c.dims(1);
  if (c.call().def->since < 7 && slope.size() == 1 && x.size() > 2)
    slope.resize(x.size() - 1, dim(1));
  require_broadcast(slope, x, "the slope");
  c.set_output(0, common_type(c), x);
}

constexpr op_def binary_row(std::string_view name, int64_t since, dtype_set element_types,
                            void (*infer)(infer_context&), void (*reference)(kernel_context&)) {
  return op_row(
      name, since, infer, reference,
      {.inputs = {2, 2}, .types = element_types, .alias = aliasing::in_place, .layouts = layout_support::agnostic});
}

/// Rows of opsets 1 to 6 take plain layouts only: a limited operand is neither of the output's dims nor one element.
constexpr op_def row_1(std::string_view name, void (*reference)(kernel_context&)) {
  op_def def = binary_row(name, 1, types::numeric, infer_limited_broadcast, reference);
  def.layouts = layout_support::plain;
  def.limited_broadcast = true;
  return def;
}

constexpr op_def arithmetic_row(std::string_view name, void (*infer)(infer_context&),
                                void (*reference)(kernel_context&), decltype(op_def::repeats) repeats) {
  op_def def = binary_row(name, 7, types::numeric, infer, reference);
  def.layouts = layout_support::broadcasting;
  def.repeats = repeats;
  return def;
}

void prelu_1_axes(call_axes& a) {
  if (a.call().rank(0) != a.call().rank(1))
    a.refuse("broadcasts as opsets before 7 did");
  axes::broadcast(a);
}

/// Until opset 6 a slope of one dim is neither of the output's dims nor one element.
constexpr op_def prelu_row(int64_t since, void (*reference)(kernel_context&)) {
  op_def def = binary_row("PRelu", since, types::numeric, infer_prelu, reference);
  if (since < 7) {
    def.layouts = layout_support::plain;
    def.axes = prelu_1_axes;
  }
  return def;
}

constexpr auto binary_rows = std::to_array<op_def>({
    row_1("Add", arithmetic_1<scalar_code::add>),
    row_1("Sub", arithmetic_1<scalar_code::subtract>),
    row_1("Mul", arithmetic_1<scalar_code::multiply>),
    row_1("Div", arithmetic_1<scalar_code::divide>),
    arithmetic_row("Add", infer_known_binary<known::add>, arithmetic<scalar_code::add>, repeats_sum),
    arithmetic_row("Sub", infer_known_binary<known::subtract>, arithmetic<scalar_code::subtract>, repeats_beside<0>),
    arithmetic_row("Mul", infer_known_binary<known::multiply>, arithmetic<scalar_code::multiply>,
                   repeats_beside<1, true>),
    arithmetic_row("Div", infer_known_binary<known::divide>, arithmetic<scalar_code::divide>, repeats_beside<1>),
    prelu_row(1, prelu_1),
    prelu_row(7, arithmetic<scalar_code::leaky_relu>),
    binary_row("Mod", 10, types::numeric, infer_modulo, modulo),
    binary_row("BitShift", 11, types::unsigned_ints, infer_bit_shift, bit_shift),
    binary_row("BitwiseAnd", 18, types::integers, infer_broadcast, bitwise<scalar_code::bits_and>),
    binary_row("BitwiseOr", 18, types::integers, infer_broadcast, bitwise<scalar_code::bits_or>),
    binary_row("BitwiseXor", 18, types::integers, infer_broadcast, bitwise<scalar_code::bits_xor>),
});

} // namespace

extern constinit const op_table onnx_binary_ops = binary_rows;

} // namespace troupe
