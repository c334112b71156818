// Devices that the caller names and a plan leaves idle.
#pragma once

#include "plan/plan.hpp"

namespace troupe {

/// What was asked for when a plan was made.
struct asked_devices {
  std::span<const std::string> names; // as in `engine_options::devices`
  std::string plan_file;              // that says where nodes run; empty if none does
  std::string policy;
};

/// Adds the nodes that each device runs, by its name: views aside, those of bodies included.
void count_nodes(const plan& p, std::map<std::string, int>& nodes);

/// Returns a line for each device that was named and gets no node of the plan, with the reason. A CPU that is named
/// beside a GPU only helps out, and "all" names none.
std::vector<std::string> why_idle(const asked_devices& asked, const plan& p);

} // namespace troupe
