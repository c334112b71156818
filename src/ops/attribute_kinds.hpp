// Which kind of value each attribute has that operators read.
#pragma once

#include "graph/graph.hpp"

namespace troupe {

/// Returns the kinds that an operator's attribute may have: bit i means alternative i of `attribute`. 0 if no
/// operator reads one of that name, or if those that do all check it at inference.
uint32_t attribute_kinds(std::string_view op_type, std::string_view name);

/// Throws `errc::invalid_model` if a node has an attribute of another kind, whether or not its operator reads it. Names
/// that no operator knows are let through, and so are operators of our own domain.
void check_attribute_kinds(const node& n);

} // namespace troupe
