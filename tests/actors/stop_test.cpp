// Executions that end early, as a device hears of it that cannot see the flag which chunks share: a device of another
// host.
#include "actors/engine_access.hpp"
#include "support/alternating_runs.hpp"
#include "support/catch.hpp"
#include "support/deterministic_system.hpp"

#include <mutex>
#include <thread>

using namespace std::chrono_literals;
using namespace troupe;
using namespace troupe::test;
using Catch::Contains;

namespace {

/// The messages that devices of `remote_like` have got.
struct heard {
  std::mutex mutex;
  std::vector<execution_id> stopped, ended;
};

/// Holds chunks until they are stopped, without a look at their flag.
class remote_like final : public device {
public:
  explicit remote_like(std::shared_ptr<heard> log) : log_(std::move(log)) {}

  const device_info& info() const override { return info_; }
  void install(bound_plan_ptr, device_index) override {}
  void retire(uint64_t) override {}
  void submit(chunk_work work, chunk_done done) override { held_[work.execution] = std::move(done); }
  void stop(execution_id execution) override {
    {
      const std::lock_guard lock(log_->mutex);
      log_->stopped.push_back(execution);
    }
    held_.at(execution)({.code = errc::cancelled, .message = "stopped"});
  }
  void end(execution_id execution) override {
    const std::lock_guard lock(log_->mutex);
    log_->ended.push_back(execution);
  }
  device_stats stats() const override { return {}; }

private:
  const device_info info_{.name = "r", .kind = device_kind::null, .memory_bytes = int64_t{1} << 40};
  const std::shared_ptr<heard> log_;
  std::map<execution_id, chunk_done> held_;
};

} // namespace

TEST_CASE("a run that is cancelled is stopped on the devices that hold chunks of it", "[actors][C11]") {
  deterministic_session s(fan_out(2, 2), 3,
                          {.pins = {{"Sigmoid*", "d0"}, {"Relu*", "d1"}}, .fuse = false}); // d2 runs nothing
  auto result = s.run({{"x", floats({4}, {1, 2, 3, 4})}});
  s.settle();
  const execution_id id = s.log(0).chunks.at(0).execution;
  const size_t busy = s.log(1).chunks.size();
  caf::anon_send(s.coordinator(), actors::cancel_run{s.last_ticket()});
  s.settle();
  CHECK(s.log(0).stopped == std::vector{id});
  CHECK(s.log(1).stopped.size() == (busy > 0 ? 1 : 0));
  CHECK(s.log(2).stopped.empty());
  CHECK(error_of(result).code() == errc::cancelled);
  s.complete_all();
  CHECK(s.log(0).ended == std::vector{id});
}

TEST_CASE("a run that ends well stops nothing", "[actors][C11]") {
  deterministic_session s(chain(3), 2, alternating);
  auto result = s.run(six);
  s.settle();
  s.complete_all();
  result.get();
  for (size_t d : {0, 1})
    CHECK((s.log(d).stopped.empty() && s.log(d).ended.empty()));
}

TEST_CASE("stop and end reach the device", "[actors][C11]") {
  const auto log = std::make_shared<heard>();
  engine e = make_engine({.devices = {}}, {.custom_devices = {[log] { return std::make_unique<remote_like>(log); }}});
  const session s = e.load(chain(2), {});
  CHECK_THROWS_WITH(s.run(six, {.timeout = 50ms}), Contains("did not end within"));
  const auto both = [&] {
    const std::lock_guard lock(log->mutex);
    return log->stopped.size() == 1 && log->ended == log->stopped;
  };
  for (int i = 0; i < 500 && !both(); ++i)
    std::this_thread::sleep_for(10ms);
  CHECK(both());
}
