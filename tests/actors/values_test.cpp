// Values that callers put on devices and fetch from them, outside of runs.
#include "device/null_device.hpp"
#include "support/bound_values.hpp"

using namespace std::chrono_literals;
using namespace troupe;
using namespace troupe::test;

namespace {

/// A device that takes its time for each chunk, on the thread of its actor.
class slow_device final : public device {
public:
  explicit slow_device(std::chrono::milliseconds chunk_time)
      : inner_({.name = "slow", .kind = device_kind::null, .memory_bytes = int64_t{1} << 40}), time_(chunk_time) {}

  const device_info& info() const override { return inner_.info(); }
  void install(bound_plan_ptr bound, device_index self) override { inner_.install(std::move(bound), self); }
  void retire(uint64_t bound_plan) override { inner_.retire(bound_plan); }
  void submit(chunk_work work, chunk_done done) override {
    std::this_thread::sleep_for(time_);
    inner_.submit(std::move(work), std::move(done));
  }
  device_stats stats() const override { return inner_.stats(); }

private:
  null_device inner_;
  const std::chrono::milliseconds time_;
};

} // namespace

TEST_CASE("a value that is put on a device is a copy", "[actors][B7]") {
  engine e = make_engine({.devices = {"cpu"}}, {.custom_devices = {reference("ref")}});
  for (const device_summary& device : e.devices()) {
    INFO(device.name);
    tensor x = filled({8}, 1.f);
    const device_tensor value = e.put(x, device.name);
    std::fill_n(x.mutable_data<float>(), 8, 2.f);
    CHECK(same(e.fetch(value), filled({8}, 1.f)));
  }
  tensor text(dtype::string, {2});
  text.mutable_data<std::string>()[1] = "before";
  const device_tensor value = e.put(text, "cpu");
  text.mutable_data<std::string>()[1] = "after";
  CHECK(e.fetch(value).values<std::string>()[1] == "before");
}

TEST_CASE("a value that is put on a GPU after other work is a copy of what it was", "[vulkan][B7]") {
  engine e({.devices = {"vulkan:0"}});
  graph_builder b;
  const value_id in = b.input("x", {512, 512});
  b.output(b.op("MatMul", {b.op("MatMul", {in, in}), in}));
  const session work = e.load(b.g);
  const named_tensors inputs{{"x", filled({512, 512}, 0.f)}};
  work.run(inputs); // kernels are compiled
  std::vector<std::future<run_result>> running;
  for (int i = 0; i < 8; ++i)
    running.push_back(work.run_async(inputs));
  tensor x = e.allocate(dtype::float32, {100'000}); // if the GPU can read it without a copy
  std::fill_n(x.mutable_data<float>(), x.size(), 1.f);
  const device_tensor value = e.put(x, "vulkan:0");
  std::fill_n(x.mutable_data<float>(), x.size(), 2.f);
  CHECK(same(e.fetch(value), filled({100'000}, 1.f)));
  for (auto& run : running)
    run.get();
}

TEST_CASE("a device that works off a long queue takes and gives values", "[actors][C11]") {
  engine e(engine_of({[] { return std::make_unique<slow_device>(100ms); }}, 500ms));
  const session s = e.load(chain(1));
  std::vector<std::future<run_result>> running;
  for (int i = 0; i < 8; ++i)
    running.push_back(s.run_async({{"x", filled({2, 3}, 1.f)}}));
  running.front().wait(); // the others are in the device's queue
  const device_tensor value = e.put(filled({3}, 7.f), "slow");
  CHECK(same(e.fetch(value), filled({3}, 7.f)));
  for (auto& run : running)
    CHECK(run.get().stats.lost_devices.empty());
}
