// The device that runs nothing: every chunk completes at once, and its downloads are zeros of the right type and shape.
//
// For measuring the engine itself and for scheduling tests. If a shape depends on data that is not computed, the
// unknown dims are 1.
#pragma once

#include "device/device.hpp"

#include <unordered_map>

namespace troupe {

class null_device final : public device {
public:
  explicit null_device(device_info info) : info_(std::move(info)) {}

  const device_info& info() const override { return info_; }
  void install(bound_plan_ptr bound, device_index self) override;
  void retire(uint64_t bound_plan) override;
  void submit(chunk_work work, chunk_done done) override;
  device_stats stats() const override;

private:
  struct installed {
    bound_plan_ptr bound;
    /// Downloads by chunk, made at the chunk's first run and shared by all later ones.
    std::unordered_map<chunk_id, std::vector<tensor>> downloads;
  };

  device_info info_;
  std::unordered_map<uint64_t, installed> plans_;
  int64_t chunks_ = 0;
};

} // namespace troupe
