// Which dims the next run will have, from those of the runs before: a decoder's caches grow by the same amount from
// step to step.
#pragma once

#include "troupe/dim.hpp"

#include <optional>
#include <vector>

namespace troupe {

class symbol_forecast {
public:
  /// Takes the symbols of a run. Returns those of the next if some have grown, none has become smaller, and all have
  /// changed by as much as the time before; nullopt if not.
  std::optional<bindings> next(const bindings& now);

private:
  std::vector<int64_t> last_, growth_; // by symbol, in the order of names; empty if not known
};

} // namespace troupe
