#include "device/slow_device.hpp"

#include <thread>

namespace troupe {
namespace {

/// What nodes take is said by the roofline alone: measured times are those of the device at its full speed.
device_profile slowed(device_profile p, double speed) {
  for (double& flops : p.flops_per_s)
    flops *= speed;
  p.memory_bytes_per_s *= speed;
  p.launch_s /= speed;
  p.submit_s /= speed;
  p.measured = nullptr;
  return p;
}

class slow_device final : public device {
public:
  slow_device(std::unique_ptr<device> inner, std::string name, int percent)
      : inner_(std::move(inner)), info_(inner_->info()), speed_(percent / 100.0) {
    info_.name = std::move(name);
    info_.kind = device_kind::slow;
    info_.processor.clear(); // it waits most of the time
    info_.description += fmt::format(", at {} % of its speed", percent);
    info_.profile = slowed(info_.profile, speed_);
  }

  const device_info& info() const override { return info_; }
  void install(bound_plan_ptr bound, device_index self) override { inner_->install(std::move(bound), self); }
  void retire(uint64_t bound_plan) override { inner_->retire(bound_plan); }
  void stop(execution_id execution) override { inner_->stop(execution); }
  void end(execution_id execution) override { inner_->end(execution); }
  bool may_hang() const override { return inner_->may_hang(); }
  device_stats stats() const override { return inner_->stats(); }

  void submit(chunk_work work, chunk_done done) override {
    const int64_t begin = now_ns();
    inner_->submit(std::move(work), [&, speed = speed_](chunk_result result) {
      const auto rest = static_cast<int64_t>(static_cast<double>(now_ns() - begin) * (1 / speed - 1));
      std::this_thread::sleep_for(std::chrono::nanoseconds(rest));
      result.busy_ns += rest;
      done(std::move(result));
    });
  }

private:
  std::unique_ptr<device> inner_;
  device_info info_;
  double speed_;
};

} // namespace

std::unique_ptr<device> make_slow_device(std::unique_ptr<device> inner, std::string name, int percent) {
  return std::make_unique<slow_device>(std::move(inner), std::move(name), percent);
}

} // namespace troupe
