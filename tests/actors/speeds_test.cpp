// A device that becomes slow while a real session runs: its work goes elsewhere, and no run fails.
#include "support/catch.hpp"
#include "support/small_models.hpp"

#include "cpu/cpu_device.hpp"

#include <deque>
#include <thread>

using namespace troupe;
using namespace troupe::test;

namespace {

/// A CPU on which a node takes 4 ms, times its pace, in which it sleeps.
class sleepy_device final : public device {
public:
  sleepy_device(const std::string& name, std::shared_ptr<const std::atomic<int>> pace)
      : inner_(make_cpu_device(name)), info_(inner_->info()), pace_(std::move(pace)) {
    info_.processor.clear();
    info_.profile = {.memory_bytes_per_s = 1e21, .launch_s = 4e-3};
    info_.profile.flops_per_s.fill(1e21);
  }

  const device_info& info() const override { return info_; }
  void install(bound_plan_ptr bound, device_index self) override {
    plans_[bound->id] = bound;
    inner_->install(std::move(bound), self);
  }
  void retire(uint64_t bound_plan) override {
    plans_.erase(bound_plan);
    inner_->retire(bound_plan);
  }
  void submit(chunk_work work, chunk_done done) override {
    const size_t nodes = plans_.at(work.bound_plan)->source->chunks[work.chunk].nodes.size();
    const auto begin = now_ns();
    inner_->submit(std::move(work), [&](chunk_result result) {
      std::this_thread::sleep_for(std::chrono::milliseconds(4) * nodes * pace_->load());
      result.busy_ns = now_ns() - begin;
      done(std::move(result));
    });
  }
  device_stats stats() const override { return inner_->stats(); }

private:
  std::unique_ptr<device> inner_;
  device_info info_;
  const std::shared_ptr<const std::atomic<int>> pace_;
  std::map<uint64_t, bound_plan_ptr> plans_;
};

size_t nodes_on(const session& s, const named_tensors& x, device_index device) {
  const auto p = plan_of(s, x);
  return static_cast<size_t>(std::count(p->placement.begin(), p->placement.end(), device));
}

} // namespace

TEST_CASE("work leaves a device that becomes slow while runs go on", "[engine][speeds]") {
  const auto steady = std::make_shared<std::atomic<int>>(1), changing = std::make_shared<std::atomic<int>>(1);
  engine e = make_engine({.devices = {}},
                         {.custom_devices = {[=] { return std::make_unique<sleepy_device>("steady", steady); },
                                             [=] { return std::make_unique<sleepy_device>("changing", changing); }}});
  const session s = e.load(chain(8), {.policy = placement_policy::pipeline, .fuse = false});
  const named_tensors x{{"x", random_tensor({2, 3}, 1)}};
  const tensor expected = s.run(x).outputs.begin()->second;
  REQUIRE(nodes_on(s, x, 1) == 4);
  std::deque<std::future<run_result>> runs;
  const auto run_for = [&](std::chrono::milliseconds most, auto&& until) {
    const auto end = std::chrono::steady_clock::now() + most;
    while (std::chrono::steady_clock::now() < end && !until()) {
      runs.push_back(s.run_async(x));
      if (runs.size() < 3)
        continue;
      const tensor y = runs.front().get().outputs.begin()->second;
      REQUIRE(std::equal(y.data<float>(), y.data<float>() + y.size(), expected.data<float>()));
      runs.pop_front();
    }
  };
  run_for(std::chrono::milliseconds(500), [] { return false; });
  *changing = 6;
  const auto has_left = [&] { return nodes_on(s, x, 1) <= 2; };
  run_for(std::chrono::seconds(30), has_left); // well within three on a quiet machine
  CHECK(has_left());
  for (auto& each : runs)
    CHECK_NOTHROW(each.get());
}
