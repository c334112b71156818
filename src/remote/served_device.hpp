// A device as the worker lends it to sessions: asked on any thread, answering on any thread, in the order of `device`
// (device/device.hpp).
#pragma once

#include "device/device.hpp"
#include "run/request.hpp"

namespace troupe::remote {

class served_device {
public:
  virtual ~served_device() = default;

  virtual const device_info& info() const = 0;
  virtual void install(bound_plan_ptr bound, device_index self, std::function<void(failure)> done) = 0;
  virtual void retire(uint64_t bound_plan) = 0;
  virtual void run(chunk_work work, chunk_done done) = 0;
  virtual void end(execution_id execution) = 0;
  virtual void fetch(device_tensor value, fetch_done done) = 0;
  virtual void put(tensor value, std::function<void(device_tensor, failure)> done) = 0;
  virtual void stats(std::function<void(const device_stats&)> done) = 0;
};

using served_device_ptr = std::shared_ptr<served_device>;

} // namespace troupe::remote
