// Attributes of operators.
#pragma once

#include "troupe/tensor.hpp"

#include <variant>

namespace troupe {

struct graph;

/// One attribute's value. Graphs are the bodies of If, Loop and Scan.
using attribute = std::variant<int64_t, float, std::string, tensor, std::shared_ptr<const graph>, std::vector<int64_t>,
                               std::vector<float>, std::vector<std::string>>;

} // namespace troupe
