// Values of simulated runs: types and dims as they would be, elements that are not computed, and no memory for them.
//
// Elements are zeros, all in one range of addresses that the kernel backs with its zero page. What control flow looks
// at is made up: a condition is true seven times, then false once, so that a loop that only its condition ends runs
// `representative_dim` times, as predictions have it.
#pragma once

#include "device/device.hpp"

#include <map>

namespace troupe::sim {

/// See the top of this file. Not thread-safe; tensors may outlive it.
class made_up_values {
public:
  /// Fills what a chunk makes on a device, as that device would.
  void fill(const bound_plan& bound, const chunk_work& work, const device_info& on);

  /// Returns a tensor of zeros, which must not be written to.
  tensor zeros(dtype type, shape dims);

private:
  tensor value(const bound_plan& bound, value_id v);

  std::shared_ptr<const void> memory_;
  int64_t bytes_ = 0;
  std::map<std::pair<const plan*, value_id>, int64_t> conditions_; // how often one was made
};

} // namespace troupe::sim
