// Models larger than a device's memory: they run over several devices, or end with one clear error.
#include "actors/engine_access.hpp"
#include "cpu/cpu_device.hpp"
#include "plan/place/policies.hpp"
#include "support/catch.hpp"
#include "support/graph_builder.hpp"

#include <fstream>
#include <unistd.h>
#ifdef __SANITIZE_ADDRESS__
extern "C" size_t __sanitizer_get_current_allocated_bytes(); // its header is not always installed
#endif

using namespace troupe;
using namespace troupe::test;
using Catch::Contains;

namespace {

constexpr int64_t width = 64;
constexpr int64_t layer_bytes = width * width * 4;

/// x [n, 64] → `layers` times MatMul and Tanh.
graph layered_model(int layers) {
  graph_builder b;
  value_id v = b.input("x", {dim::symbol("n"), width});
  for (int i = 0; i < layers; ++i) {
    std::vector<float> elements(width * width);
    for (size_t e = 0; e < elements.size(); ++e)
      elements[e] = 0.02f * static_cast<float>((e * 7 + static_cast<size_t>(i) * 13) % 19) - 0.18f;
    const value_id w = b.constant(fmt::format("w{}", i), tensor::of<float>({width, width}, elements));
    v = b.op("Tanh", {b.op("MatMul", {v, w}, {}, fmt::format("product{}", i))}, {}, i + 1 < layers ? "" : "y");
  }
  b.output(v);
  return b.g;
}

named_tensors some_input(int64_t n) {
  std::vector<float> elements(static_cast<size_t>(n * width));
  for (size_t i = 0; i < elements.size(); ++i)
    elements[i] = 0.1f * static_cast<float>(i % 21) - 1;
  return {{"x", tensor::of<float>({n, width}, elements)}};
}

void check_close(const tensor& got, const tensor& wanted) {
  REQUIRE(got.dims() == wanted.dims());
  for (int64_t i = 0; i < got.size(); ++i)
    REQUIRE(got.values<float>()[i] == Approx(wanted.values<float>()[i]).margin(1e-4));
}

tensor unlimited(int layers, int64_t n) {
  engine e({.devices = {"cpu"}});
  return e.load(layered_model(layers)).run(some_input(n)).outputs.at("y");
}

/// Bytes of memory that the process holds; under AddressSanitizer, which holds freed memory, those in use.
int64_t held_bytes() {
#ifdef __SANITIZE_ADDRESS__
  return static_cast<int64_t>(__sanitizer_get_current_allocated_bytes());
#else
  int64_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
#endif
}

/// A CPU that claims plenty of memory and gives little.
class boastful_device final : public device {
public:
  explicit boastful_device(int64_t gives) : cpu_(make_cpu_device("boastful")), gives_(gives) {}
  const device_info& info() const override { return cpu_->info(); }
  void install(bound_plan_ptr bound, device_index self) override {
    if (bytes_needed(*bound->layout, self) > gives_)
      fail(errc::out_of_memory, "there is less than it said");
    cpu_->install(std::move(bound), self);
  }
  void retire(uint64_t bound_plan) override { cpu_->retire(bound_plan); }
  void submit(chunk_work work, chunk_done done) override { cpu_->submit(std::move(work), std::move(done)); }
  device_stats stats() const override { return cpu_->stats(); }

private:
  std::unique_ptr<device> cpu_;
  int64_t gives_;
};

} // namespace

TEST_CASE("a model larger than a device's limit runs over several", "[actors][B2][B3]") {
  const int layers = 20;
  engine e({.devices = {"cpu*2"}, .memory = {{"cpu", 12 * layer_bytes}}});
  CHECK(e.devices()[0].memory_bytes == 12 * layer_bytes);
  for (const policy_row& row : policies()) {
    if (row.small_only)
      continue;
    INFO(row.name);
    const session s = e.load(layered_model(layers), {.policy = row.policy});
    for (int64_t n : {1, 8, 64, 3})
      check_close(s.run(some_input(n)).outputs.at("y"), unlimited(layers, n));
    const auto p = plan_of(s, some_input(8));
    CHECK(p->weight_bytes[0] <= 12 * layer_bytes);
    CHECK(p->weight_bytes[1] > 0);
    CHECK(s.run(some_input(8)).stats.plan_cached);
  }
  const session s = e.load(layered_model(layers));
  CHECK_THAT(plan_of(s, some_input(1))->remarks.at(0), Contains("spilled") && Contains("'cpu#1'"));
}

TEST_CASE("only the bindings that do not fit spill", "[actors][B3]") {
  engine e({.devices = {"cpu*2"}, .memory = {{"cpu", 8 * layer_bytes}}});
  const session s = e.load(layered_model(4));
  CHECK(plan_of(s, some_input(1))->remarks.empty());
  CHECK_FALSE(plan_of(s, some_input(100))->remarks.empty());
  CHECK(plan_of(s, some_input(1))->remarks.empty());
  check_close(s.run(some_input(100)).outputs.at("y"), unlimited(4, 100));
}

TEST_CASE("a model larger than all devices is one error, a hundred times over", "[actors][B2][E4]") {
  engine e({.devices = {"cpu*2"}, .memory = {{"cpu", 3 * layer_bytes}, {"cpu#1", 3 * layer_bytes}}});
  int64_t before = 0;
  for (int i = 0; i < 100; ++i) {
    if (i == 20)
      before = held_bytes();
    const session s = e.load(layered_model(20));
    CHECK_THROWS_WITH(s.run(some_input(4)), Contains("does not fit the devices together") && Contains("'cpu'") &&
                                                Contains("'cpu#1'") && Contains("49152 bytes"));
  }
  CHECK(held_bytes() - before < 4 << 20);
  check_close(e.load(layered_model(1)).run(some_input(4)).outputs.at("y"), unlimited(1, 4));
}

TEST_CASE("a device with less memory than it claims is given less", "[actors][B2][B3]") {
  engine e = make_engine({.devices = {"cpu"}},
                         {.custom_devices = {[] { return std::make_unique<boastful_device>(8 * layer_bytes); }}});
  const int layers = 20;
  const session s = e.load(layered_model(layers), {.pins = {{"MatMul_product0", "boastful"}}, .fuse = false});
  REQUIRE(plan_of(s, some_input(2))->weight_bytes[1] == layer_bytes);
  const session all = e.load(layered_model(layers), {.policy = placement_policy::weighted});
  check_close(all.run(some_input(2)).outputs.at("y"), unlimited(layers, 2));
  const auto p = plan_of(all, some_input(2));
  CHECK(p->weight_bytes[1] <= 8 * layer_bytes);
  CHECK(p->remarks.size() == 1);
}

TEST_CASE("a memory limit on a device that is not open is refused", "[actors]") {
  CHECK_THROWS_WITH(engine({.devices = {"cpu"}, .memory = {{"vulkan:0", 1}}}),
                    Contains("'vulkan:0', which is not open"));
}
