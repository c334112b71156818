// Elementwise mathematics of one operand: y[i] = f(x[i]), without attributes. Floats are computed in float (double in
// double), integers in their own type; overflow wraps.
#include "ops/elementwise.hpp"
#include "ops/families.hpp"
#include "ops/infer.hpp"
#include "ops/known.hpp"
#include "tensor/float8.hpp"

namespace troupe {
namespace {

constexpr auto absolute = [](auto x) {
  using T = decltype(x);
  if constexpr (std::is_floating_point_v<T>)
    return std::abs(x);
  else if constexpr (std::is_signed_v<T>)
    return static_cast<T>(x < 0 ? wrapping<T>(0) - static_cast<wrapping<T>>(x) : static_cast<wrapping<T>>(x));
  else
    return x;
};

constexpr auto negative = [](auto x) {
  using T = decltype(x);
  if constexpr (std::is_floating_point_v<T>)
    return -x;
  else
    return static_cast<T>(wrapping<T>(0) - static_cast<wrapping<T>>(x));
};

/// -1, 0 or 1; NaN stays NaN.
constexpr auto sign = [](auto x) {
  using T = decltype(x);
  if constexpr (std::is_unsigned_v<T>)
    return static_cast<T>(x != 0);
  else
    return x > 0 ? T(1) : x < 0 ? T(-1) : x;
};

constexpr auto reciprocal = [](auto x) { return 1 / x; };
constexpr auto floor_of = [](auto x) { return std::floor(x); };
constexpr auto ceil_of = [](auto x) { return std::ceil(x); };
/// Halves to even: the default rounding mode, which nobody changes here.
constexpr auto round_of = [](auto x) { return std::nearbyint(x); };
constexpr auto sqrt_of = [](auto x) { return std::sqrt(x); };
constexpr auto exp_of = [](auto x) { return std::exp(x); };
constexpr auto log_of = [](auto x) { return std::log(x); };
constexpr auto sin_of = [](auto x) { return std::sin(x); };
constexpr auto cos_of = [](auto x) { return std::cos(x); };
constexpr auto tan_of = [](auto x) { return std::tan(x); };
constexpr auto asin_of = [](auto x) { return std::asin(x); };
constexpr auto acos_of = [](auto x) { return std::acos(x); };
constexpr auto atan_of = [](auto x) { return std::atan(x); };
constexpr auto sinh_of = [](auto x) { return std::sinh(x); };
constexpr auto cosh_of = [](auto x) { return std::cosh(x); };
constexpr auto tanh_of = [](auto x) { return std::tanh(x); };
constexpr auto asinh_of = [](auto x) { return std::asinh(x); };
constexpr auto acosh_of = [](auto x) { return std::acosh(x); };
constexpr auto atanh_of = [](auto x) { return std::atanh(x); };
constexpr auto erf_of = [](auto x) { return std::erf(x); };
constexpr auto complement = [](auto x) { return static_cast<decltype(x)>(~x); };

template <auto F>
void float_kernel(kernel_context& c) {
  map_float(c, F);
}

template <auto F>
void unary_kernel(kernel_context& c) {
  map_numeric(c, F);
}

void bitwise_not(kernel_context& c) {
  visit_integer(c.input(0).type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    map_elements(c.input(0).as<T>(), c.output(0).as<T>(), c.output(0).size(), complement);
  });
}

void logical_not(kernel_context& c) {
  map_elements(c.input(0).as<uint8_t>(), c.output(0).as<uint8_t>(), c.output(0).size(),
               [](uint8_t x) { return x == 0; });
}

/// Calls `f` with each element as float or double, results 0 or 1.
template <class F>
void test_floats(kernel_context& c, F f) {
  uint8_t* y = c.output(0).as<uint8_t>();
  const const_view& x = c.input(0);
  if (is_float8(x.type))
    return map_elements(x.as<uint8_t>(), y, x.size(), [&](uint8_t bits) { return f(decode_float8(x.type, bits)); });
  visit_float(x.type, [&](auto tag) { map_elements(x.as<typename decltype(tag)::type>(), y, x.size(), f); });
}

void is_nan(kernel_context& c) {
  test_floats(c, [](auto x) { return x != x; });
}

void is_inf(kernel_context& c) {
  const bool positive = c.attrs().integer("detect_positive", 1) != 0;
  const bool negative = c.attrs().integer("detect_negative", 1) != 0;
  test_floats(c, [=](auto x) { return std::isinf(x) && (x > 0 ? positive : negative); });
}

void infer_bool(infer_context& c) {
  c.set_output(0, dtype::boolean, c.dims(0));
}

template <known_unary Rule>
void infer_known_unary(infer_context& c) {
  infer_same(c);
  set_known_unary(c, c.type(0), Rule);
}

constexpr op_def unary_row(std::string_view name, int64_t since, void (*reference)(kernel_context&),
                           dtype_set element_types = types::floats, void (*infer)(infer_context&) = infer_same) {
  return {.name = name,
          .since = since,
          .types = element_types,
          .alias = aliasing::in_place,
          .layouts = layout_support::agnostic,
          .infer = infer,
          .reference = reference};
}

/// A row whose function takes many flops; perhaps its results outgrow float16.
constexpr op_def costly_unary(std::string_view name, int64_t since, void (*reference)(kernel_context&),
                              bool needs_float32 = false) {
  op_def def = unary_row(name, since, reference, types::floats, infer_same);
  def.cost = transcendental_cost;
  def.needs_float32 = needs_float32;
  return def;
}

constexpr auto unary_rows = std::to_array<op_def>({
    unary_row("Abs", 1, unary_kernel<absolute>, types::numeric, infer_known_unary<known::absolute>),
    unary_row("Neg", 1, unary_kernel<negative>, types::numeric, infer_known_unary<known::negative>),
    unary_row("Sign", 9, unary_kernel<sign>, types::numeric, infer_same),
    unary_row("Floor", 1, float_kernel<floor_of>, types::floats, infer_same),
    unary_row("Ceil", 1, float_kernel<ceil_of>, types::floats, infer_same),
    unary_row("Round", 11, float_kernel<round_of>, types::floats, infer_same),
    unary_row("Sqrt", 1, float_kernel<sqrt_of>, types::floats, infer_same),
    unary_row("Reciprocal", 1, float_kernel<reciprocal>, types::floats, infer_same),
    costly_unary("Exp", 1, float_kernel<exp_of>, true),
    costly_unary("Log", 1, float_kernel<log_of>),
    costly_unary("Sin", 7, float_kernel<sin_of>),
    costly_unary("Cos", 7, float_kernel<cos_of>),
    costly_unary("Tan", 7, float_kernel<tan_of>),
    costly_unary("Asin", 7, float_kernel<asin_of>),
    costly_unary("Acos", 7, float_kernel<acos_of>),
    costly_unary("Atan", 7, float_kernel<atan_of>),
    costly_unary("Sinh", 9, float_kernel<sinh_of>),
    costly_unary("Cosh", 9, float_kernel<cosh_of>),
    costly_unary("Tanh", 1, float_kernel<tanh_of>),
    costly_unary("Asinh", 9, float_kernel<asinh_of>),
    costly_unary("Acosh", 9, float_kernel<acosh_of>),
    costly_unary("Atanh", 9, float_kernel<atanh_of>),
    costly_unary("Erf", 9, float_kernel<erf_of>),
    unary_row("BitwiseNot", 18, bitwise_not, types::integers, infer_same),
    unary_row("Not", 1, logical_not, types::boolean, infer_known_unary<known::negation>),
    unary_row("IsNaN", 9, is_nan, types::floats | types::float8, infer_bool),
    unary_row("IsInf", 10, is_inf, types::floats | types::float8, infer_bool),
});

} // namespace

std::span<const op_def> unary_ops() {
  return unary_rows;
}

} // namespace troupe
