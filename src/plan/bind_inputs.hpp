// Symbol values from the shapes of a run's inputs.
#pragma once

#include "graph/graph.hpp"

namespace troupe {

/// Returns the values of all symbols that the inputs' dims say. An input dim that is a lone symbol binds it; every other
/// dim is checked against what is bound. `given` holds values stated beside the inputs. Throws `errc::invalid_input` naming
/// input, axis, expected and found where inputs are missing or extra, a rank or dim differs, or two inputs disagree.
bindings bind_inputs(const graph& program, const std::map<std::string, shape>& shapes, const bindings& given = {});

} // namespace troupe
