// Attributes and shape inference that several families share.
#pragma once

#include "ops/op.hpp"

#include <algorithm>
#include <initializer_list>

namespace troupe {

/// Output 0 has input 0's type and dims.
inline void infer_same(infer_context& c) {
  c.set_output(0, c.type(0), c.dims(0), c.input(0).elements);
}

/// Returns the element type that attribute `name` states by ONNX's number for it, `otherwise` if it is not there.
inline dtype stated_type(const attributes& attrs, std::string_view name, dtype otherwise) {
  return attrs.has(name) ? dtype_from_onnx(static_cast<int>(attrs.integer(name))) : otherwise;
}

/// Returns attribute `name`, `otherwise` if it is not there. Throws `errc::invalid_model`, which lists the `known`
/// words, unless it is one of them.
std::string word_of(const attributes& attrs, std::string_view name, std::string_view otherwise,
                    std::initializer_list<std::string_view> known);

/// The same as an enumerator: `known` has the words of all enumerators in order.
template <class E>
E word_as(const attributes& attrs, std::string_view name, std::string_view otherwise,
          std::initializer_list<std::string_view> known) {
  return static_cast<E>(std::ranges::find(known, word_of(attrs, name, otherwise, known)) - known.begin());
}

/// Returns the common type of all present inputs; throws `errc::invalid_model` if two differ.
inline dtype common_type(const infer_context& c) {
  for (size_t i = 1; i < c.input_count(); ++i)
    if (c.has_input(i) && c.type(i) != c.type(0))
      fail(errc::invalid_model, "inputs have different element types: {} and {}", to_string(c.type(0)),
           to_string(c.type(i)));
  return c.type(0);
}

/// Returns the broadcast of all present inputs' dims.
inline symbolic_shape broadcast_inputs(const infer_context& c) {
  symbolic_shape dims = c.dims(0);
  for (size_t i = 1; i < c.input_count(); ++i)
    if (c.has_input(i))
      dims = broadcast(dims, c.dims(i));
  return dims;
}

/// Output 0 has the inputs' common type and broadcast dims.
inline void infer_broadcast(infer_context& c) {
  c.set_output(0, common_type(c), broadcast_inputs(c));
}

/// `op_def::repeats` of an operator that only changes type or dims.
inline std::optional<size_t> repeats_first(const infer_context&) {
  return 0;
}

/// The same for one that combines its operands: of a single one nothing is left to do.
inline std::optional<size_t> repeats_only(const infer_context& c) {
  return c.input_count() == 1 ? std::optional<size_t>(0) : std::nullopt;
}

/// The same for x ∘ y, which is x if all of y is `Neutral`, and y if all of x is if the operands commute.
template <int Neutral, bool Commutes = false>
std::optional<size_t> repeats_beside(const infer_context& c) {
  if (Commutes && c.is_filled(0, Neutral))
    return 1;
  return c.is_filled(1, Neutral) ? std::optional<size_t>(0) : std::nullopt;
}

} // namespace troupe
