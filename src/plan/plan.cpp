#include "plan/plan.hpp"

namespace troupe {

placement_policy parse_policy(std::string_view name) {
  if (name == "single")
    return placement_policy::single;
  if (name == "round-robin")
    return placement_policy::round_robin;
  fail(errc::invalid_argument, "unknown policy '{}'; known are: single, round-robin", name);
}

} // namespace troupe
