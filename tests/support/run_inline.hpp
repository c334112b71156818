// Runs a plan from the calling thread, chunk by chunk, without actors: for tests and measuring tools.
#pragma once

#include "device/device.hpp"
#include "plan/bind/layout_buckets.hpp"

namespace troupe {

/// Installed segments of one plan, to run them again with the same inputs' dims or others.
class inline_runner {
public:
  /// `devices` are the plan's, in its order.
  inline_runner(std::shared_ptr<const plan> p, std::vector<device*> devices);

  /// Runs the plan; `inputs` in the order of the graph's, outputs likewise. A chunk's failure is thrown as an `error`.
  /// If `timings` is given, the times of the devices are appended.
  std::vector<tensor> run(std::span<const tensor> inputs, std::vector<device_timing>* timings = nullptr);

private:
  /// Returns the bound segment for these symbols' values, installed on all devices.
  const bound_plan_ptr& installed(uint32_t segment, const bindings& symbols);
  void run_chunk(const bound_plan& bound, chunk_id id, bindings& symbols, std::vector<device_timing>* timings);

  std::shared_ptr<const plan> plan_;
  std::vector<device*> devices_;
  layout_buckets layouts_{16};
  std::map<std::pair<uint32_t, bindings>, bound_plan_ptr> installed_;
  std::vector<value_ref> values_; // by value: inputs and downloads
};

} // namespace troupe
