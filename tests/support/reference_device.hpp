// A device for tests: runs every chunk node by node through the reference kernels, on separate tensors. Values that
// stay on it are in separate memory too, so that they must be fetched, and are lost with it.
#pragma once

#include "device/device.hpp"

#include <unordered_map>

namespace troupe::test {

class reference_device final : public device {
public:
  explicit reference_device(std::string name);

  const device_info& info() const override { return info_; }
  void install(bound_plan_ptr bound, device_index self) override;
  void retire(uint64_t bound_plan) override { plans_.erase(bound_plan); }
  void submit(chunk_work work, chunk_done done) override;
  void fetch(const device_tensor& value, const fetch_done& done) override;
  device_tensor put(const tensor& value) override;
  device_stats stats() const override;

private:
  using values = std::vector<tensor>; // by value

  void run(const chunk_work& work);
  void give_back(const tensor& value, moved_value& to);
  static tensor find(const bound_plan& bound, const values& held, value_id v);

  device_info info_;
  std::unordered_map<uint64_t, bound_plan_ptr> plans_;
  std::unordered_map<uint64_t, std::unordered_map<uint32_t, values>> slots_; // by bound plan, slot
  int64_t chunks_ = 0, uploaded_bytes_ = 0, downloaded_bytes_ = 0;
  std::shared_ptr<std::atomic<int64_t>> resident_bytes_ = std::make_shared<std::atomic<int64_t>>(0);
};

} // namespace troupe::test
