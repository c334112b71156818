// Installs: devices get their parts of a plan.
#include "actors/engine_access.hpp"
#include "device/null_device.hpp"
#include "support/catch.hpp"
#include "support/small_models.hpp"
#include "support/thrown.hpp"

#include <atomic>
#include <condition_variable>
#include <set>

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

/// A device that has no room for plans until the test gives it some. It must not be told to run a plan that it does not
/// have.
class full_device final : public device {
public:
  explicit full_device(std::shared_ptr<std::atomic<bool>> full)
      : inner_({.name = "full", .kind = device_kind::null, .memory_bytes = int64_t{1} << 40}), full_(std::move(full)) {}

  const device_info& info() const override { return inner_.info(); }
  void install(bound_plan_ptr bound, device_index self) override {
    if (full_->load())
      fail(errc::out_of_memory, "others hold its memory");
    installed_.insert(bound->id);
    inner_.install(std::move(bound), self);
  }
  void retire(uint64_t bound_plan) override {
    installed_.erase(bound_plan);
    inner_.retire(bound_plan);
  }
  void submit(chunk_work work, chunk_done done) override {
    expects(installed_.contains(work.bound_plan), "a device was sent a chunk of a plan that is not installed");
    inner_.submit(std::move(work), std::move(done));
  }
  device_stats stats() const override { return inner_.stats(); }

private:
  null_device inner_;
  const std::shared_ptr<std::atomic<bool>> full_;
  std::set<uint64_t> installed_;
};

} // namespace

TEST_CASE("a device that has no room for a plan is there when it has", "[actors][B2][C11]") {
  const auto full = std::make_shared<std::atomic<bool>>(true);
  engine_hooks hooks;
  hooks.custom_devices.push_back([=] { return std::make_unique<full_device>(full); });
  engine e = make_engine({.devices = {}}, hooks);
  const session s = e.load(chain(2));
  const named_tensors x{{"x", floats({2, 3}, {1, 2, 3, 4, 5, 6})}};
  for (int i = 0; i < 3; ++i)
    CHECK(thrown_by([&] { s.run(x); }).code() == errc::out_of_memory);
  CHECK(e.lost_devices().empty());
  *full = false;
  CHECK(s.run(x).outputs.size() == 1);
}

TEST_CASE("all devices allocate and load their weights at the same time", "[actors][B6]") {
  const auto all = std::make_shared<meeting>(3);
  engine_hooks hooks;
  for (const char* name : {"a", "b", "c"})
    hooks.custom_devices.push_back([=] { return std::make_unique<meeting_device>(name, all); });
  engine e = make_engine({.devices = {}}, hooks);
  const session s = e.load(chain(6), {.policy = placement_policy::round_robin, .fuse = false});
  CHECK(s.run({{"x", floats({2, 3}, {1, 2, 3, 4, 5, 6})}}).outputs.size() == 1);
}
