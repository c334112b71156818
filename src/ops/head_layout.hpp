// The order of heads and positions in an operand of attention or rotary embedding.
#pragma once

#include "base/error.hpp"
#include "graph/attributes.hpp"

namespace troupe {

/// Inputs of attention, ONNX's and troupe's, that hold past keys and values.
inline constexpr size_t past_key_input = 4, past_value_input = 5;

/// Returns whether attribute `name` puts heads after positions ("bshd"); by default ("bhsd") they come before. Throws
/// `errc::invalid_model` for other texts.
inline bool heads_behind(const attributes& attrs, std::string_view name) {
  const std::string text = attrs.text(name, "bhsd");
  if (text != "bhsd" && text != "bshd")
    fail(errc::invalid_model, "attribute '{}' is '{}', but must be bhsd or bshd", name, text);
  return text == "bshd";
}

} // namespace troupe
