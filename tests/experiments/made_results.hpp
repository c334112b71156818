// Results made up for tests: a model on one target, three policies, and the times of their runs.
#pragma once

#include "experiments/results.hpp"

namespace troupe::experiments {

/// Returns results of `single` (the baseline), `heft` and `dmda`, in each mode, with these times; the repetitions are
/// as many as the longest.
inline results made_results(const std::vector<std::vector<double>>& seconds, std::vector<mode> modes = {mode::real}) {
  results all;
  all.what.name = "made up";
  all.what.repetitions = 1;
  const placement_policy policies[] = {placement_policy::single, placement_policy::heft, placement_policy::dmda};
  for (const mode m : modes)
    for (const placement_policy p : policies) {
      const size_t number = all.what.settings.size();
      if (number == seconds.size())
        break;
      all.what.settings.push_back({.model = "models/m.onnx",
                                   .dims = {{"batch", 8}},
                                   .where = device_list{"vulkan:0", "cpu"},
                                   .policy = p,
                                   .mode = m,
                                   .baseline = number - (number % 3)});
      for (size_t i = 0; i < seconds[number].size(); ++i)
        all.rows.push_back({number, i, seconds[number][i]});
      all.what.repetitions = std::max(all.what.repetitions, seconds[number].size());
    }
  return all;
}

} // namespace troupe::experiments
