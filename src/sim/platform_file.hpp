// SimGrid's platforms (platform XML, DTD 4.1) as clusters ([README](README.md) says what of them counts).
#pragma once

#include "sim/cluster.hpp"

namespace troupe::sim {

/// Reads a platform. Throws `errc::invalid_argument`, naming the line and the element, for what is wrong and for what
/// is not supported.
cluster parse_platform(std::string_view text);

} // namespace troupe::sim
