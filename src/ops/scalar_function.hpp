// THE table of scalar functions: y = f(a, b, c), one element each. It feeds the operators that apply one element by
// element, the chains and the ends of products that fusion makes, the activations of recurrent cells, the CPU's vector
// loops and the GPU's launches.
//
// To add a function: its number in shaders/scalar_codes.h, its row here, its formula in scalar_formulas.hpp, and as a
// case of shaders/elementwise.comp.
#pragma once

#include "ops/op.hpp"

#include <limits>

namespace troupe {

#define SCALAR(name, number) name = (number),
enum class scalar_code : uint8_t {
#include "shaders/scalar_codes.h"
};
#undef SCALAR

/// A float attribute of an operator, and what it is if it is absent.
struct real_attribute {
  std::string_view name;
  float otherwise = 0;
};

// The fields are in the order in which a row says them. NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding)
struct scalar_function {
  scalar_code code;
  std::string_view name;      // of the operator, if `since` is not 0; also what an attribute calls an activation
  int64_t since;              // opset of the operator's row
  int operands;               // of the formula, 1 to 3
  dtype_set types;            // that the formula takes
  int flops = 1;              // about
  bool ends_products = false; // as the activation of a fused convolution or matrix product
  real_attribute attribute_operands[2] = {}; // which attributes the last operands are; those before are inputs
  std::string_view domain = {};              // of the operator

  /// Returns how many operands are inputs.
  constexpr int values() const {
    return operands - !attribute_operands[0].name.empty() - !attribute_operands[1].name.empty();
  }
};

/// Rows in the order of their codes; after them those of further operators. `since` 0: no operator is this function
/// whatever its attributes are.
// clang-format off
inline constexpr auto scalar_functions = [] {
  using enum scalar_code;
  using namespace types;
  constexpr float infinity = std::numeric_limits<float>::infinity(), largest = std::numeric_limits<float>::max();
  constexpr int quotient = 4, costly = 16;
  constexpr scalar_function rows[] = {
      {add, "Add", 7, 2, numeric},
      {subtract, "Sub", 7, 2, numeric},
      {multiply, "Mul", 7, 2, numeric},
      {divide, "Div", 7, 2, numeric, quotient},
      {scalar_code::pow, "Pow", 7, 2, floats, costly},
      {minimum, "Min", 1, 2, numeric},
      {maximum, "Max", 1, 2, numeric},
      {negate, "Neg", 1, 1, numeric},
      {scalar_code::abs, "Abs", 1, 1, numeric},
      {reciprocal, "Reciprocal", 1, 1, floats, quotient},
      {scalar_code::sqrt, "Sqrt", 1, 1, floats, quotient},
      {scalar_code::exp, "Exp", 1, 1, floats, costly},
      {scalar_code::log, "Log", 1, 1, floats, costly},
      {scalar_code::erf, "Erf", 9, 1, floats, costly},
      {scalar_code::tanh, "Tanh", 1, 1, floats, costly, true},
      {scalar_code::sin, "Sin", 7, 1, floats, costly},
      {scalar_code::cos, "Cos", 7, 1, floats, costly},
      {scalar_code::floor, "Floor", 1, 1, floats},
      {scalar_code::ceil, "Ceil", 1, 1, floats},
      {softplus, "Softplus", 1, 1, floats, costly},
      {relu, "Relu", 1, 1, numeric, 1, true},
      {sigmoid, "Sigmoid", 1, 1, floats, costly, true},
      {hard_swish, "HardSwish", 14, 1, floats, quotient, true},
      {gelu, "Gelu", 20, 1, floats, costly, true},
      {gelu_tanh, "GeluTanh", 0, 1, floats, costly, true},
      {clip, "Clip", 6, 3, floats, 1, true, {{"min", -largest}, {"max", largest}}},
      {hard_sigmoid, "HardSigmoid", 1, 3, floats, quotient, true, {{"alpha", 0.2f}, {"beta", 0.5f}}},
      {leaky_relu, "LeakyRelu", 1, 2, floats, 1, true, {{"alpha", 0.01f}}},
      {swish, "Swish", 24, 2, floats, costly, true, {{"alpha", 1}}},
      {elu, "Elu", 1, 2, floats, costly, false, {{"alpha", 1}}},
      {same, "", 0, 1, numeric, 1, true},
      {sign, "Sign", 9, 1, numeric},
      {scalar_code::round, "Round", 11, 1, floats},
      {scalar_code::tan, "Tan", 7, 1, floats, costly},
      {scalar_code::asin, "Asin", 7, 1, floats, costly},
      {scalar_code::acos, "Acos", 7, 1, floats, costly},
      {scalar_code::atan, "Atan", 7, 1, floats, costly},
      {scalar_code::sinh, "Sinh", 9, 1, floats, costly},
      {scalar_code::cosh, "Cosh", 9, 1, floats, costly},
      {scalar_code::asinh, "Asinh", 9, 1, floats, costly},
      {scalar_code::acosh, "Acosh", 9, 1, floats, costly},
      {scalar_code::atanh, "Atanh", 9, 1, floats, costly},
      {thresholded_relu, "ThresholdedRelu", 1, 2, floats, 1, false, {{"alpha", 1}}},
      {softsign, "Softsign", 1, 1, floats, quotient},
      {mish, "Mish", 18, 1, floats, costly},
      {selu, "Selu", 6, 3, floats, costly, false,
       {{"alpha", 1.67326319218681884765625f}, {"gamma", 1.05070102214813232421875f}}},
      {celu, "Celu", 12, 2, floats, costly, false, {{"alpha", 1}}},
      {shrink, "Shrink", 9, 3, numeric, 1, false, {{"lambd", 0.5f}, {"bias", 0}}},
      {modulo, "Mod", 10, 2, numeric, costly},
      {truncated_modulo, "", 0, 2, numeric, costly},
      {affine, "Affine", 0, 3, floats, 1, false, {{"alpha", 1}, {"beta", 0}}},
      {scaled_tanh, "ScaledTanh", 0, 3, floats, costly, false, {{"alpha", 1}, {"beta", 1}}},
      {bits_and, "BitwiseAnd", 18, 2, integers},
      {bits_or, "BitwiseOr", 18, 2, integers},
      {bits_xor, "BitwiseXor", 18, 2, integers},
      {complement, "BitwiseNot", 18, 1, integers},
      {shift_left, "", 0, 2, unsigned_ints},
      {shift_right, "", 0, 2, unsigned_ints},

      {clip, "Clip", 1, 3, floats, 1, true, {{"min", -infinity}, {"max", infinity}}},
      {selu, "Selu", 1, 3, floats, costly, false, {{"alpha", 1.6732f}, {"gamma", 1.0507f}}},
      {leaky_relu, "PRelu", 7, 2, numeric},
      {swish, "QuickGelu", 1, 2, floats, costly, false, {{"alpha", 1.702f}}, "com.microsoft"},
      {add, "Sum", 1, 2, floats},
  };
  return std::to_array(rows);
}();
// clang-format on

inline constexpr size_t scalar_code_count = static_cast<size_t>(scalar_code::shift_right) + 1;

/// Returns the row of a code.
constexpr const scalar_function& function_of(scalar_code code) {
  return scalar_functions[static_cast<size_t>(code)];
}

/// Returns whether GPUs run a function as one step among several.
constexpr bool joins_chains(scalar_code code) {
  return code <= scalar_code::same;
}

/// One function of some inputs and, after them, numbers.
struct scalar_call {
  scalar_code code;
  int values;
  std::vector<float> numbers;
};

/// Returns the largest finite number of a float type: what Clip limits elements to if a bound is absent.
double largest_number(dtype type);

/// Returns the function of an operator's row that the attributes choose; nullopt for attributes that choose none.
std::optional<scalar_call> scalar_call_of(const scalar_function& row, const attributes& attrs);

/// The same for an operator; nullopt too if it is not a scalar function. Inputs beyond the call's values are combined
/// from the left (Max of three).
std::optional<scalar_call> scalar_call_of(const op_def& def, const attributes& attrs);

} // namespace troupe
