// Which element types the inputs of a call may have together: a string of letters for each operator (the table:
// type_rules.cpp), a letter for each input. What stands in parentheses at the end, else the last letter, is repeated
// for all that follow. Operators that are not in the table take operands of one type.
//
//   T        the type of input 0
//   U V W    one type, whichever, for all inputs of that letter
//   P Q      one float type for all inputs of that letter
//   b i l f  boolean, int32, int64, float32
//   n        int32 or int64
//   F        any float
//   S        any float, or float8e8m0: the scale of a quantisation
//   N        any number, or bool
//   *        what the operator's `infer` takes
#pragma once

#include "ops/op.hpp"

namespace troupe {

/// Returns an operator's letters.
std::string_view operand_letters(const op_def& def);

/// Returns the letter of input `i`.
char operand_letter(std::string_view letters, size_t i);

/// Returns whether all letters are known, and parentheses, if any, stand around the last of them.
bool are_operand_letters(std::string_view letters);

/// Throws `errc::invalid_model`, naming node and input, if the element types of a resolved node's operands do not go
/// together. Kernels count on the answer: they read operands as what their row says. What control flow takes is for its
/// bodies to say.
void check_operand_types(const graph& g, const node& n);

} // namespace troupe
