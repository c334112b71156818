// Where a policy does badly: small instances, found by searching, on which one policy loses most to another one.
#pragma once

#include "schedules/cost_matrix.hpp"

#include <string_view>

namespace troupe {

/// A task graph and devices: work by speed are seconds of tasks, sizes by the speed of links seconds of edges.
struct scheduling_instance {
  std::vector<double> work;               // by task
  std::vector<double> speeds;             // by device
  std::vector<std::vector<double>> links; // by pair of devices, the same both ways
  std::vector<cost_edge> edges;           // with sizes in the place of seconds; `from` < `to`

  bool operator==(const scheduling_instance&) const = default;
};

/// An instance, and on what it was found.
struct adverse_instance {
  std::string loser, winner; // policies
  uint64_t seed = 0;
  scheduling_instance instance;
};

cost_matrix costs_of(const scheduling_instance& instance);

/// Returns the instance with the greatest makespan of `loser` by that of `winner` that a simulated annealing finds:
/// PISA (Coleman, Krishnamachari, "PISA: an adversarial approach to comparing task graph scheduling algorithms", 2024,
/// arXiv:2403.07120) with the parameters of its program: 10 tries, each from a chain of 3 to 5 tasks on 3 to 5 devices,
/// numbers from 0.1 to 1. Equal seeds find the same. Throws `errc::invalid_argument` for policies that do not exist.
adverse_instance find_adverse(const std::string& loser, const std::string& winner, uint64_t seed);

/// Returns an instance as JSON.
std::string to_json(const adverse_instance& found);
/// Whether a text is one of `to_json`, by its beginning.
bool is_instance(std::string_view text);
/// Returns what `to_json` was given, to the last bit. Throws `errc::invalid_argument`, naming the place, for what is no
/// instance.
adverse_instance parse_instance(std::string_view text);

} // namespace troupe
