// Symbol values from the shapes of a run's inputs.
#pragma once

#include "graph/graph.hpp"

namespace troupe {

/// Returns the values of all symbols that the inputs' dims say. An input dim that is a lone symbol binds it; every other
/// dim is checked against what is bound. `given` holds values stated beside the inputs. Throws `errc::invalid_input` naming
/// input, axis, expected and found where inputs are missing, a rank or dim differs, or two inputs disagree.
/// `shapes` are parallel to `program.inputs`, null for an input that is missing.
bindings bind_inputs(const graph& program, std::span<const shape* const> shapes, const bindings& given = {});

} // namespace troupe
