// What one run needs of a session's caches, and by which keys its bindings are kept.
#pragma once

#include "run/model.hpp"

namespace troupe {

struct prepared_run {
  planned_model_ptr source;
  bindings symbols; // what the inputs say
  bool cached = false;
  std::vector<int64_t> taken; // bytes that executions around a body use, by device of the plan; empty for a model
  bound_plan_ptr bound;       // the first segment
  planned_model_ptr asked;    // `source`, or if that spills: what it replaces …
  hash128 key;                // … for this binding of it
  hash128 asked_key;          // by which `asked` is kept; not of a body's
};

/// Returns `prepared_run::key`.
hash128 binding_key(const prepared_run& run);
/// Returns the key of a segment of `source`, bound to the symbols.
hash128 segment_key(const prepared_run& run, uint32_t segment);

} // namespace troupe
