// A device for tests: runs every chunk node by node through the reference kernels, on tensors of its own.
#pragma once

#include "device/device.hpp"

#include <unordered_map>

namespace troupe::test {

class reference_device final : public device {
public:
  explicit reference_device(std::string name)
      : info_{.name = std::move(name), .kind = device_kind::cpu, .memory_bytes = int64_t{1} << 40} {}

  const device_info& info() const override { return info_; }
  void install(bound_plan_ptr bound, device_index self) override;
  void retire(uint64_t bound_plan) override { plans_.erase(bound_plan); }
  void submit(chunk_work work, chunk_done done) override;
  device_stats stats() const override;

private:
  using values = std::vector<tensor>; // by value

  void run(const chunk_work& work, chunk_result& result);
  static tensor find(const bound_plan& bound, const values& held, value_id v);

  device_info info_;
  std::unordered_map<uint64_t, bound_plan_ptr> plans_;
  std::unordered_map<uint64_t, std::unordered_map<uint32_t, values>> slots_; // by bound plan, slot
  int64_t chunks_ = 0;
};

} // namespace troupe::test
