#pragma once

#include "device/device.hpp"

namespace troupe::test {

/// Hands a chunk to a device for a test that looks at it, or says something else than the device when it has ended.
using chunk_tap = std::function<void(device& inner, chunk_work work, chunk_done done)>;

/// Runs what it is given, as its tap has it.
class tapped_device final : public device {
public:
  tapped_device(std::unique_ptr<device> inner, chunk_tap tap) : inner_(std::move(inner)), tap_(std::move(tap)) {}

  const device_info& info() const override { return inner_->info(); }
  void install(bound_plan_ptr bound, device_index self) override { inner_->install(std::move(bound), self); }
  void retire(uint64_t bound_plan) override { inner_->retire(bound_plan); }
  void fetch(const device_tensor& value, const fetch_done& done) override { inner_->fetch(value, done); }
  device_tensor put(const tensor& value) override { return inner_->put(value); }
  device_stats stats() const override { return inner_->stats(); }
  void submit(chunk_work work, chunk_done done) override { tap_(*inner_, std::move(work), std::move(done)); }

private:
  const std::unique_ptr<device> inner_;
  const chunk_tap tap_;
};

/// Returns a device that runs its chunk `n`, counted from 0, then reports that it failed.
inline std::unique_ptr<device> late_failure(std::unique_ptr<device> inner, int64_t n) {
  return std::make_unique<tapped_device>(
      std::move(inner), [left = n](device& to, chunk_work work, chunk_done done) mutable {
        if (left-- != 0)
          return to.submit(std::move(work), std::move(done));
        to.submit(std::move(work), [done](const chunk_result&) {
          done({.code = errc::device_failed, .message = "the chunk failed when it was done"});
        });
      });
}

} // namespace troupe::test
