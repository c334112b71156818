// Pow: y = a^b with broadcasting; the result has a's type, b may have another. Float bases compute in float (double in
// double); an integer base with an integer exponent is exact and wraps, with a float exponent it goes through double.
#include "ops/families.hpp"
#include "ops/infer.hpp"
#include "ops/onnx/elementwise.hpp"
#include "ops/onnx/limited_broadcast.hpp"
#include "ops/scalar_formulas.hpp"
#include "tensor/convert.hpp"

namespace troupe {
namespace {

/// a^b by squaring, modulo 2^bits. A negative exponent leaves 1, -1 and, for other bases (0 too), 0.
template <class T>
T integer_power(T a, int64_t b) {
  if (b < 0) {
    if (a == 1)
      return 1;
    if constexpr (std::is_signed_v<T>)
      if (a == -1)
        return b % 2 ? T(-1) : T(1);
    return 0;
  }
  wrapping<T> base = static_cast<wrapping<T>>(+a), power = 1;
  for (; b > 0; b >>= 1, base *= base)
    if (b & 1)
      power *= base;
  return static_cast<T>(power);
}

/// The second operand as elements of type T.
tensor exponents(const const_view& b, dtype type) {
  tensor t(type, shape(b.dims.begin(), b.dims.end()));
  convert(b, t.mutable_ref());
  return t;
}

/// Runs the frequent single exponents without std::pow; returns whether it did. Same results, signs and NaNs as pow's.
template <class T, class Exponent>
bool small_power(kernel_context& c, Exponent exponent) {
  const auto map = [&](auto f) {
    map_elements(c.input(0).as<T>(), c.output(0).as<T>(), c.output(0).size(), f);
    return true;
  };
  if (exponent == 2)
    return map([](auto x) { return x * x; });
  if (exponent == 3)
    return map([](auto x) { return x * x * x; });
  if (exponent == 1)
    return map([](auto x) { return x; });
  if (exponent == -1)
    return map([](auto x) { return 1 / x; });
  if (exponent == Exponent(0.5)) // unlike sqrt, pow gives +0 for -0 and +∞ for -∞
    return map([](auto x) { return std::isinf(x) ? std::abs(x) : std::sqrt(x + 0); });
  return false;
}

template <class T>
void float_power(kernel_context& c, const const_view& b) {
  using C = compute_type<T>;
  const tensor power = exponents(b, dtype_of<C>);
  const bool same_shape = c.input(0).size() == c.output(0).size();
  if (power.size() == 1 && same_shape && small_power<T>(c, *power.data<C>()))
    return;
  zip<T, C, T>(c.input(0), power.view(), c.output(0), scalar_formula<scalar_code::pow>());
}

template <class T>
void integral_power(kernel_context& c, const const_view& b) {
  if (types::integers & set_of(b.type)) {
    const tensor power = exponents(b, dtype::int64);
    return zip<T, int64_t, T>(c.input(0), power.view(), c.output(0),
                              [](T x, int64_t y) { return integer_power(x, y); });
  }
  const tensor power = exponents(b, dtype::float64);
  zip<T, double, T>(c.input(0), power.view(), c.output(0),
                    [](T x, double y) { return to_integer<T>(std::pow(static_cast<double>(x), y)); });
}

void power_with(kernel_context& c, const const_view& b) {
  visit_numeric(c.input(0).type, [&]<class T>(type_tag<T>) {
    if constexpr (std::is_integral_v<T>)
      integral_power<T>(c, b);
    else
      float_power<T>(c, b);
  });
}

void power(kernel_context& c) {
  power_with(c, c.input(1));
}

void power_1(kernel_context& c) {
  const limited_operand b(c);
  power_with(c, b.view());
}

void infer_power(infer_context& c) {
  if (!(types::numeric & set_of(c.type(1))))
    fail(errc::invalid_model, "the exponent's element type is {}", to_string(c.type(1)));
  c.set_output(0, c.type(0), broadcast_inputs(c));
}

op_cost power_cost(const attributes&, const call_shapes& call) {
  return cost_per_element(call, function_of(scalar_code::pow).flops);
}

constexpr op_def row(int64_t since, void (*infer)(infer_context&), void (*reference)(kernel_context&)) {
  return {.name = "Pow",
          .since = since,
          .inputs = {2, 2},
          .types = types::numeric,
          .alias = aliasing::in_place,
          .layouts = since < 7 ? layout_support::plain : layout_support::agnostic,
          .limited_broadcast = since < 7,
          .needs_float32 = true,
          .infer = infer,
          .reference = reference,
          .cost = power_cost,
          .repeats = repeats_beside<1>};
}

constexpr auto pow_rows = std::to_array<op_def>({
    row(1, infer_limited_broadcast, power_1),
    row(7, infer_power, power),
});

} // namespace

extern constinit const op_table onnx_pow_ops = pow_rows;

} // namespace troupe
