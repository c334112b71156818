#include "graph/made_up_dims.hpp"

namespace troupe {

shape dims_or_ones(const symbolic_shape& dims, bindings& values) {
  shape made;
  for (const dim& d : dims) {
    std::vector<std::string> symbols;
    d.collect_symbols(symbols);
    for (const std::string& symbol : symbols)
      values.try_emplace(symbol, 1);
    made.push_back(d.evaluate(values));
  }
  return made;
}

} // namespace troupe
