#pragma once

#include "device/device.hpp"

namespace troupe::test {

/// Runs a chunk, then reports that it failed.
class late_failure final : public device {
public:
  late_failure(std::unique_ptr<device> inner, int64_t fail_at) : inner_(std::move(inner)), left_(fail_at) {}

  const device_info& info() const override { return inner_->info(); }
  void install(bound_plan_ptr bound, device_index self) override { inner_->install(std::move(bound), self); }
  void retire(uint64_t bound_plan) override { inner_->retire(bound_plan); }
  void fetch(const device_tensor& value, const fetch_done& done) override { inner_->fetch(value, done); }
  device_tensor put(const tensor& value) override { return inner_->put(value); }
  device_stats stats() const override { return inner_->stats(); }
  void submit(chunk_work work, chunk_done done) override {
    if (left_-- != 0)
      return inner_->submit(std::move(work), std::move(done));
    inner_->submit(std::move(work), [done](const chunk_result&) {
      done({.code = errc::device_failed, .message = "the chunk failed when it was done"});
    });
  }

private:
  std::unique_ptr<device> inner_;
  int64_t left_;
};

} // namespace troupe::test
