// Names of attributes that no file's node has.
#pragma once

#include <string_view>

namespace troupe {

/// Attributes of names that begin so are what rewrites tell each other of an If or Loop. The loader leaves them out.
inline constexpr std::string_view own_attribute_prefix = "troupe.";

} // namespace troupe
