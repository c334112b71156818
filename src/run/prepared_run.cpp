#include "run/prepared_run.hpp"

namespace troupe {

hash128 binding_key(const prepared_run& run) {
  hasher h;
  h.add(run.asked->compiled->key);
  for (const auto& [name, value] : run.symbols)
    h.add(value); // a plan's symbols are always the same
  for (int64_t bytes : run.taken)
    h.add(bytes);
  return h.digest();
}

hash128 segment_key(const prepared_run& run, uint32_t segment) {
  hasher h;
  h.add(run.source->serial);
  h.add(segment);
  for (const auto& [name, value] : run.symbols)
    h.add(value);
  return h.digest();
}

} // namespace troupe
