// The formulas of scalar_function.hpp, each once. M is the mathematics that they are computed with: `exact_math`, or
// the vector forms of a device. Comparisons are written so that NaN stays NaN. Integers wrap; a division by zero gives
// 0.
#pragma once

#include "ops/scalar_function.hpp"

#include <cmath>
#include <functional>
#include <utility>

namespace troupe {

/// The standard library's functions, for which a vector form may stand in.
struct exact_math {
  static auto exp(auto x) { return std::exp(x); }
  static auto expm1(auto x) { return std::expm1(x); }
  /// ln(1 + x) for 0 ≤ x ≤ 1.
  static auto log1p(auto x) { return std::log1p(x); }
  static auto tanh(auto x) { return std::tanh(x); }
  static auto erf(auto x) { return std::erf(x); }
  // Far below 0 these are e^v times a number; for floats v needs more digits than a float has.
  /// x · Φ(x)
  static auto gelu(auto x) { return static_cast<decltype(x)>(0.5 * x * std::erfc(x * -0.70710678118654752440)); }
  /// x (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2
  static auto gelu_tanh(auto x) {
    const double v = x;
    return swish_of(x, 1.59576912160573071176 * v * (1 + 0.044715 * v * v));
  }
  /// x / (1 + e^(−alpha x))
  static auto swish(auto x, auto alpha) { return swish_of(x, static_cast<double>(alpha) * x); }

private:
  static auto swish_of(auto x, double v) { return static_cast<decltype(x)>(x / (1 + std::exp(-v))); }
};

/// Unsigned type to compute T's wrapping arithmetic with, at least as wide as int (no promotion to a signed type).
template <class T>
using wrapping = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;

namespace scalar {

using enum scalar_code;

/// f(a, b), which wraps for integers.
template <class T, class F>
T wrap(T a, T b, F f) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(f(static_cast<wrapping<T>>(a), static_cast<wrapping<T>>(b)));
  else
    return f(a, b);
}

template <class T>
bool is_negative(T x) {
  if constexpr (std::is_unsigned_v<T>)
    return false;
  else
    return x < 0;
}

template <class T>
T quotient(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0)
      return 0;
    if constexpr (std::is_signed_v<T>)
      if (b == -1)
        return wrap(T(0), a, std::minus());
  }
  return static_cast<T>(a / b);
}

/// With the sign of a, as C's.
template <class T>
T remainder(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::fmod(a, b);
  } else {
    if constexpr (std::is_signed_v<T>)
      if (b == -1)
        return 0;
    return b == 0 ? T(0) : static_cast<T>(a % b);
  }
}

template <class M, class T>
T logistic(T x) {
  return 1 / (1 + M::exp(-x));
}

/// Limited to [low, high]; `high` everywhere if low > high, as NumPy's clip does.
template <class T>
T limited(T x, T low, T high) {
  const T raised = x < low ? low : x;
  return raised > high ? high : raised;
}

template <scalar_code Code, class M>
constexpr auto formula = nullptr;

// clang-format off
template <class M> constexpr auto formula<add, M> = [](auto a, auto b) { return wrap(a, b, std::plus()); };
template <class M> constexpr auto formula<subtract, M> = [](auto a, auto b) { return wrap(a, b, std::minus()); };
template <class M> constexpr auto formula<multiply, M> = [](auto a, auto b) { return wrap(a, b, std::multiplies()); };
template <class M> constexpr auto formula<divide, M> = [](auto a, auto b) { return quotient(a, b); };
template <class M> constexpr auto formula<pow, M> = [](auto a, auto b) { return std::pow(a, b); };
// NaN wins over every number, as in NumPy.
template <class M> constexpr auto formula<minimum, M> = [](auto a, auto b) { return a < b || a != a ? a : b; };
template <class M> constexpr auto formula<maximum, M> = [](auto a, auto b) { return a > b || a != a ? a : b; };
template <class M> constexpr auto formula<negate, M> = [](auto a) {
  if constexpr (std::is_integral_v<decltype(a)>)
    return wrap(decltype(a)(0), a, std::minus());
  else
    return -a;
};
template <class M> constexpr auto formula<abs, M> = [](auto a) {
  if constexpr (std::is_integral_v<decltype(a)>)
    return is_negative(a) ? formula<negate, M>(a) : a;
  else
    return std::abs(a);
};
template <class M> constexpr auto formula<reciprocal, M> = [](auto a) { return 1 / a; };
template <class M> constexpr auto formula<sqrt, M> = [](auto a) { return std::sqrt(a); };
template <class M> constexpr auto formula<exp, M> = [](auto a) { return M::exp(a); };
template <class M> constexpr auto formula<log, M> = [](auto a) { return std::log(a); };
template <class M> constexpr auto formula<erf, M> = [](auto a) { return M::erf(a); };
template <class M> constexpr auto formula<tanh, M> = [](auto a) { return M::tanh(a); };
template <class M> constexpr auto formula<sin, M> = [](auto a) { return std::sin(a); };
template <class M> constexpr auto formula<cos, M> = [](auto a) { return std::cos(a); };
template <class M> constexpr auto formula<floor, M> = [](auto a) { return std::floor(a); };
template <class M> constexpr auto formula<ceil, M> = [](auto a) { return std::ceil(a); };
// ln(1 + e^a) without overflow
template <class M> constexpr auto formula<softplus, M> = [](auto a) {
  return (a > 0 ? a : decltype(a)(0)) + M::log1p(M::exp(-std::abs(a)));
};
template <class M> constexpr auto formula<relu, M> = [](auto a) { return is_negative(a) ? decltype(a)(0) : a; };
template <class M> constexpr auto formula<sigmoid, M> = [](auto a) { return logistic<M>(a); };
template <class M> constexpr auto formula<hard_swish, M> = [](auto a) {
  using T = decltype(a);
  return a * limited(a * (T(1) / 6) + T(0.5), T(0), T(1));
};
template <class M> constexpr auto formula<gelu, M> = [](auto a) { return M::gelu(a); };
template <class M> constexpr auto formula<gelu_tanh, M> = [](auto a) { return M::gelu_tanh(a); };
template <class M> constexpr auto formula<clip, M> = [](auto a, auto low, auto high) { return limited(a, low, high); };
template <class M> constexpr auto formula<hard_sigmoid, M> = [](auto a, auto alpha, auto beta) {
  using T = decltype(a);
  return limited(alpha * a + beta, T(0), T(1));
};
template <class M> constexpr auto formula<leaky_relu, M> = [](auto a, auto slope) {
  return is_negative(a) ? wrap(slope, a, std::multiplies()) : a;
};
template <class M> constexpr auto formula<swish, M> = [](auto a, auto alpha) { return M::swish(a, alpha); };
template <class M> constexpr auto formula<elu, M> = [](auto a, auto alpha) { return a < 0 ? alpha * M::expm1(a) : a; };
template <class M> constexpr auto formula<same, M> = [](auto a) { return a; };
template <class M> constexpr auto formula<sign, M> = [](auto a) {
  using T = decltype(a);
  return a > 0 ? T(1) : is_negative(a) ? T(-1) : a;
};
// Halves to even: the default rounding mode, which the program never changes.
template <class M> constexpr auto formula<round, M> = [](auto a) { return std::nearbyint(a); };
template <class M> constexpr auto formula<tan, M> = [](auto a) { return std::tan(a); };
template <class M> constexpr auto formula<asin, M> = [](auto a) { return std::asin(a); };
template <class M> constexpr auto formula<acos, M> = [](auto a) { return std::acos(a); };
template <class M> constexpr auto formula<atan, M> = [](auto a) { return std::atan(a); };
template <class M> constexpr auto formula<sinh, M> = [](auto a) { return std::sinh(a); };
template <class M> constexpr auto formula<cosh, M> = [](auto a) { return std::cosh(a); };
template <class M> constexpr auto formula<asinh, M> = [](auto a) { return std::asinh(a); };
template <class M> constexpr auto formula<acosh, M> = [](auto a) { return std::acosh(a); };
template <class M> constexpr auto formula<atanh, M> = [](auto a) { return std::atanh(a); };
template <class M> constexpr auto formula<thresholded_relu, M> = [](auto a, auto alpha) {
  return a > alpha ? a : decltype(a)(0); // so NaN gives 0: the definition compares, and has 0 for the rest
};
template <class M> constexpr auto formula<softsign, M> = [](auto a) { return a / (1 + std::abs(a)); };
// a · tanh(ln(1 + e^a)); from 30 on that is a
template <class M> constexpr auto formula<mish, M> = [](auto a) {
  using T = decltype(a);
  const T e = M::exp(a > 30 ? T(30) : a), n = e * (e + 2);
  return a * (n / (n + 2));
};
template <class M> constexpr auto formula<selu, M> = [](auto a, auto alpha, auto gamma) {
  return gamma * formula<elu, M>(a, alpha);
};
template <class M> constexpr auto formula<celu, M> = [](auto a, auto alpha) {
  return a < 0 ? alpha * M::expm1(a / alpha) : a;
};
// Towards 0 by `bias`, 0 for the rest: between -lambda and lambda, and for NaN.
template <class M> constexpr auto formula<shrink, M> = [](auto a, auto lambda, auto bias) {
  return a < -lambda ? a + bias : a > lambda ? a - bias : decltype(a)(0);
};
// With the divisor's sign, as Python's.
template <class M> constexpr auto formula<modulo, M> = [](auto a, auto b) {
  const auto r = remainder(a, b);
  return r != 0 && is_negative(r) != is_negative(b) ? static_cast<decltype(a)>(r + b) : r;
};
template <class M> constexpr auto formula<truncated_modulo, M> = [](auto a, auto b) { return remainder(a, b); };
template <class M> constexpr auto formula<affine, M> = [](auto a, auto alpha, auto beta) { return alpha * a + beta; };
template <class M> constexpr auto formula<scaled_tanh, M> = [](auto a, auto alpha, auto beta) {
  return alpha * M::tanh(beta * a);
};
template <class M> constexpr auto formula<bits_and, M> = [](auto a, auto b) { return wrap(a, b, std::bit_and()); };
template <class M> constexpr auto formula<bits_or, M> = [](auto a, auto b) { return wrap(a, b, std::bit_or()); };
template <class M> constexpr auto formula<bits_xor, M> = [](auto a, auto b) { return wrap(a, b, std::bit_xor()); };
template <class M> constexpr auto formula<complement, M> = [](auto a) { return static_cast<decltype(a)>(~a); };
// By the type's width or more: 0.
template <class M> constexpr auto formula<shift_left, M> = [](auto a, auto b) {
  using T = decltype(a);
  return b >= sizeof(T) * 8 ? T(0) : static_cast<T>(static_cast<wrapping<T>>(a) << b);
};
template <class M> constexpr auto formula<shift_right, M> = [](auto a, auto b) {
  using T = decltype(a);
  return b >= sizeof(T) * 8 ? T(0) : static_cast<T>(a >> b);
};
// clang-format on

} // namespace scalar

/// The function of a code, of three operands whatever it needs.
template <scalar_code Code, class M = exact_math>
struct scalar_formula {
  static constexpr int operands = function_of(Code).operands;

  template <class T>
  [[gnu::always_inline]] T operator()(T a, [[maybe_unused]] T b = {}, [[maybe_unused]] T c = {}) const {
    if constexpr (operands == 1)
      return scalar::formula<Code, M>(a);
    else if constexpr (operands == 2)
      return scalar::formula<Code, M>(a, b);
    else
      return scalar::formula<Code, M>(a, b, c);
  }
};

/// Whether a function takes elements that are computed in type T.
template <class T>
constexpr bool takes(const scalar_function& f) {
  return (f.types & set_of(dtype_of<T>)) != 0;
}

constexpr bool ends_products(const scalar_function& f) {
  return f.ends_products;
}

/// Calls `visit` with the scalar_formula of `code`, which is one of those that `among` is true for.
template <class M, bool (*among)(const scalar_function&), class Visit>
void with_formula(scalar_code code, Visit visit) {
  using call = void (*)(Visit&);
  constexpr auto call_of = []<size_t I>(std::integral_constant<size_t, I>) -> call {
    if constexpr (among(scalar_functions[I]))
      return [](Visit& v) { v(scalar_formula<static_cast<scalar_code>(I), M>()); };
    else
      return nullptr;
  };
  static constexpr auto calls = [call_of]<size_t... I>(std::index_sequence<I...>) {
    return std::array<call, sizeof...(I)>{call_of(std::integral_constant<size_t, I>())...};
  }
  (std::make_index_sequence<scalar_code_count>());
  const call found = calls[static_cast<size_t>(code)];
  expects(found != nullptr, "a scalar function that does not take these elements");
  found(visit);
}

} // namespace troupe
