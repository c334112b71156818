// A plan for other speeds of the devices, beside the one that a session uses. Pure, for a thread that has the time.
#pragma once

#include "plan/bind/layout_buckets.hpp"
#include "run/prepared_run.hpp"
#include "run/speed_watch.hpp"

namespace troupe {

/// What a plan is to be made for.
struct beside_question {
  prepared_run used;                  // a run by the plan that is used: of one segment, bound, without bodies
  std::vector<device_info> devices;   // of that plan
  plan_options options;               // of that plan
  std::vector<device_profile> stated; // what devices state of themselves, by device of the engine …
  std::vector<double> paces;          // … and how many times as long they take
  double in_flight = 1;               // runs, on average
  std::shared_ptr<layout_buckets> layouts;
};

struct plan_beside {
  std::vector<device_profile> profiles; // that it counts on, by device of the engine
  planned_model_ptr planned;
  bound_plan_ptr bound;          // to the symbols of the run
  speed_watch::ended_run stated; // what the devices state that it takes
  speed_watch::candidate figures;
};

/// Makes it. Throws what planning and binding throw.
plan_beside make_beside(const beside_question& asked);

/// Returns what a bound plan of one segment takes by what devices state; nothing is measured in it.
speed_watch::ended_run stated_times(const planned_model& planned, const bound_plan& bound,
                                    const std::vector<device_profile>& stated);

} // namespace troupe
