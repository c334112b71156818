// Words for what kinds of values attributes have.
#pragma once

#include "troupe/attribute.hpp"

#include <array>
#include <string_view>

namespace troupe {

/// By alternative of `attribute`, with an article.
inline constexpr std::array<std::string_view, std::variant_size_v<attribute>> attribute_kind_names{
    "an integer",         "a float",          "a string",         "a tensor", "a graph",
    "a list of integers", "a list of floats", "a list of strings"};

} // namespace troupe
