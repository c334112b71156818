// How a GPU chunk should be submitted: in one submission, or wave by wave.
//
// One submission costs least, but nothing comes back before the last wave has ended. Apart, what early waves make is read
// back while later waves compute; every wave then costs a submission of its own.
#pragma once

#include "plan/bound_plan.hpp"

namespace troupe {

enum class granularity : uint8_t {
  fused,   // the whole chunk in one submission
  by_wave, // a submission a wave
};

/// Returns "fused" or "by-wave".
std::string_view to_string(granularity g);

/// What the choice depends on, in seconds.
struct submission_facts {
  uint32_t waves = 1;
  double submit_s = 0;     // launch cost: what one more submission costs
  double readback_s = 0;   // read-back volume: downloads of values that are there before the last wave
  double work_after_s = 0; // density: what the waves behind the first such value compute
};

/// Apart only where the read-back that hides behind work is worth more than the submissions that it takes.
granularity choose_granularity(const submission_facts& facts);

/// Returns the facts of a GPU chunk with these dims, by value.
submission_facts facts_of(const plan& p, const chunk& c, std::span<const shape> dims);

} // namespace troupe
