// Installs: what devices do when they get their parts of a plan.
#include "actors/engine_access.hpp"
#include "device/null_device.hpp"
#include "support/catch.hpp"
#include "support/small_models.hpp"

#include <condition_variable>

using namespace std::chrono_literals;
using namespace troupe;
using namespace troupe::test;

namespace {

/// Where threads wait until all have come.
class meeting {
public:
  explicit meeting(int count) : missing_(count) {}

  /// Returns whether all came, within ten seconds.
  bool come() {
    std::unique_lock lock(mutex_);
    if (--missing_ == 0)
      all_here_.notify_all();
    return all_here_.wait_for(lock, 10s, [&] { return missing_ <= 0; });
  }

private:
  std::mutex mutex_;
  std::condition_variable all_here_;
  int missing_;
};

/// A device that takes its part of a plan when all others do.
class meeting_device final : public device {
public:
  meeting_device(std::string name, std::shared_ptr<meeting> all)
      : inner_({.name = std::move(name), .kind = device_kind::null, .memory_bytes = int64_t{1} << 40}),
        all_(std::move(all)) {}

  const device_info& info() const override { return inner_.info(); }
  void install(bound_plan_ptr bound, device_index self) override {
    if (!all_->come())
      fail(errc::device_failed, "the other devices are not installing");
    inner_.install(std::move(bound), self);
  }
  void retire(uint64_t bound_plan) override { inner_.retire(bound_plan); }
  void submit(chunk_work work, chunk_done done) override { inner_.submit(std::move(work), std::move(done)); }
  device_stats stats() const override { return inner_.stats(); }

private:
  null_device inner_;
  std::shared_ptr<meeting> all_;
};

} // namespace

TEST_CASE("all devices allocate and load their weights at the same time", "[actors][B6]") {
  const auto all = std::make_shared<meeting>(3);
  engine_hooks hooks;
  for (const char* name : {"a", "b", "c"})
    hooks.custom_devices.push_back([=] { return std::make_unique<meeting_device>(name, all); });
  engine e = make_engine({.devices = {}}, hooks);
  const session s = e.load(chain(6), {.policy = placement_policy::round_robin, .fuse = false});
  CHECK(s.run({{"x", floats({2, 3}, {1, 2, 3, 4, 5, 6})}}).outputs.size() == 1);
}
