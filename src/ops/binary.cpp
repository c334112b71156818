// Elementwise arithmetic of two operands with NumPy broadcasting: y = f(a, b). Until opset 6 the broadcast was limited: with
// attribute `broadcast`, b's dims are a contiguous run of a's that starts at `axis` (by default they are the last ones).
#include "ops/elementwise.hpp"
#include "ops/families.hpp"
#include "ops/infer.hpp"
#include "ops/known.hpp"
#include "ops/limited_broadcast.hpp"

namespace troupe {
namespace {

constexpr auto add_of = [](auto a, auto b) {
  using T = decltype(a);
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<wrapping<T>>(a) + static_cast<wrapping<T>>(b));
  else
    return a + b;
};

constexpr auto subtract_of = [](auto a, auto b) {
  using T = decltype(a);
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<wrapping<T>>(a) - static_cast<wrapping<T>>(b));
  else
    return a - b;
};

constexpr auto multiply_of = [](auto a, auto b) {
  using T = decltype(a);
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<wrapping<T>>(a) * static_cast<wrapping<T>>(b));
  else
    return a * b;
};

constexpr auto divide_of = [](auto a, auto b) {
  if constexpr (std::is_integral_v<decltype(a)>)
    return integer_divide(a, b);
  else
    return a / b;
};

/// fmod = 0: the remainder has the divisor's sign.
constexpr auto modulo_of = [](auto a, auto b) {
  using T = decltype(a);
  T r;
  if constexpr (std::is_integral_v<T>)
    r = integer_remainder(a, b);
  else
    r = std::fmod(a, b);
  if constexpr (std::is_signed_v<T>)
    if (r != 0 && (r < 0) != (b < 0))
      r = static_cast<T>(r + b);
  return r;
};

/// fmod = 1: the remainder has the dividend's sign, as C's.
constexpr auto c_modulo_of = [](auto a, auto b) {
  if constexpr (std::is_integral_v<decltype(a)>)
    return integer_remainder(a, b);
  else
    return std::fmod(a, b);
};

/// Runs `f` over operands of one type, the second one's dims read as `b`.
template <class F>
void zip_numeric(kernel_context& c, const const_view& b, F f) {
  visit_numeric(c.input(0).type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    zip<T, T, T>(c.input(0), b, c.output(0), f);
  });
}

template <auto F>
void arithmetic(kernel_context& c) {
  zip_numeric(c, c.input(1), F);
}

template <auto F>
void arithmetic_1(kernel_context& c) {
  const limited_operand b(c);
  zip_numeric(c, b.view(), F);
}

void modulo(kernel_context& c) {
  if (c.attrs().integer("fmod", 0) != 0)
    return zip_numeric(c, c.input(1), c_modulo_of);
  zip_numeric(c, c.input(1), modulo_of);
}

/// One type for all integers; a shift of the width or more gives 0.
void bit_shift(kernel_context& c) {
  const std::string direction = c.attrs().text("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    fail(errc::invalid_model, "attribute 'direction' is '{}', not 'LEFT' or 'RIGHT'", direction);
  const bool left = direction == "LEFT";
  visit_integer(c.input(0).type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_unsigned_v<T>)
      zip<T, T, T>(c.input(0), c.input(1), c.output(0), [=](T a, T b) {
        if (b >= sizeof(T) * 8)
          return T(0);
        return left ? static_cast<T>(static_cast<wrapping<T>>(a) << b) : static_cast<T>(a >> b);
      });
    else
      fail(errc::unsupported, "element type {} cannot be shifted", to_string(dtype_of<T>));
  });
}

template <auto F>
void bitwise(kernel_context& c) {
  visit_integer(c.input(0).type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    zip<T, T, T>(c.input(0), c.input(1), c.output(0), [](T a, T b) { return static_cast<T>(F(a, b)); });
  });
}

constexpr auto and_bits = [](auto a, auto b) { return a & b; };
constexpr auto or_bits = [](auto a, auto b) { return a | b; };
constexpr auto xor_bits = [](auto a, auto b) { return a ^ b; };

template <known_binary Rule>
void infer_known_binary(infer_context& c) {
  const symbolic_shape dims = broadcast_inputs(c);
  c.set_output(0, common_type(c), dims);
  set_known_binary(c, c.type(0), dims, Rule);
}

void infer_modulo(infer_context& c) {
  infer_broadcast(c);
  if (c.attrs().integer("fmod", 0) == 0)
    set_known_binary(c, c.type(0), broadcast_inputs(c), known::modulo);
}

constexpr op_def binary_row(std::string_view name, int64_t since, dtype_set element_types,
                            void (*infer)(infer_context&), void (*reference)(kernel_context&)) {
  return {.name = name,
          .since = since,
          .inputs = {2, 2},
          .types = element_types,
          .alias = aliasing::in_place,
          .layouts = layout_support::agnostic,
          .infer = infer,
          .reference = reference};
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

constexpr auto binary_rows = std::to_array<op_def>({
    row_1("Add", arithmetic_1<add_of>),
    row_1("Sub", arithmetic_1<subtract_of>),
    row_1("Mul", arithmetic_1<multiply_of>),
    row_1("Div", arithmetic_1<divide_of>),
    arithmetic_row("Add", infer_known_binary<known::add>, arithmetic<add_of>, nullptr), // x + 0 turns -0 into 0
    arithmetic_row("Sub", infer_known_binary<known::subtract>, arithmetic<subtract_of>, repeats_beside<0>),
    arithmetic_row("Mul", infer_known_binary<known::multiply>, arithmetic<multiply_of>, repeats_beside<1, true>),
    arithmetic_row("Div", infer_known_binary<known::divide>, arithmetic<divide_of>, repeats_beside<1>),
    binary_row("Mod", 10, types::numeric, infer_modulo, modulo),
    binary_row("BitShift", 11, types::unsigned_ints, infer_broadcast, bit_shift),
    binary_row("BitwiseAnd", 18, types::integers, infer_broadcast, bitwise<and_bits>),
    binary_row("BitwiseOr", 18, types::integers, infer_broadcast, bitwise<or_bits>),
    binary_row("BitwiseXor", 18, types::integers, infer_broadcast, bitwise<xor_bits>),
});

} // namespace

std::span<const op_def> binary_ops() {
  return binary_rows;
}

} // namespace troupe
