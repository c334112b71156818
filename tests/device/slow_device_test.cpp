#include "device/slow_device.hpp"

#include "support/catch.hpp"

#include <thread>

using namespace troupe;

namespace {

constexpr std::chrono::milliseconds chunk_time(5);

/// A device whose chunks take `chunk_time`.
class steady_device final : public device {
public:
  const device_info& info() const override { return info_; }
  void install(bound_plan_ptr, device_index) override {}
  void retire(uint64_t) override {}
  void submit(chunk_work, chunk_done done) override {
    std::this_thread::sleep_for(chunk_time);
    done({.busy_ns = std::chrono::nanoseconds(chunk_time).count()});
  }
  device_stats stats() const override { return {}; }

private:
  device_info info_{.name = "cpu", .description = "steady"};
};

} // namespace

TEST_CASE("a slow device takes longer by as much as it says, and plans know it", "[device][C7]") {
  const auto slow = make_slow_device(std::make_unique<steady_device>(), "slow:25", 25);
  CHECK(slow->info().name == "slow:25");
  CHECK(slow->info().kind == device_kind::slow);
  CHECK(slow->info().profile.memory_bytes_per_s == device_profile{}.memory_bytes_per_s / 4);
  const int64_t begin = now_ns();
  chunk_result ended{.message = "not called"};
  slow->submit({}, [&](chunk_result r) { ended = std::move(r); });
  CHECK(ended.ok());
  CHECK(now_ns() - begin >= 4 * std::chrono::nanoseconds(chunk_time).count());
  CHECK(ended.busy_ns >= 4 * std::chrono::nanoseconds(chunk_time).count());
}
