#include "actors/engine.hpp"
#include "support/catch.hpp"
#include "support/reference_device.hpp"
#include "support/small_models.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

engine_options reference_engine(size_t count) {
  engine_options options{.devices = {}};
  for (size_t i = 0; i < count; ++i)
    options.custom_devices.push_back([i] { return std::make_unique<reference_device>("ref" + std::to_string(i)); });
  return options;
}

float sigmoid(float x) {
  return 1 / (1 + std::exp(-x));
}

} // namespace

TEST_CASE("a model runs on the null device and gives zeros of the right shape", "[actors]") {
  engine e({.devices = {"null"}});
  const session s = e.load(chain(3));
  const run_result r = s.run({{"x", floats({2, 3}, {1, 2, 3, 4, 5, 6})}});
  REQUIRE(r.outputs.size() == 1);
  const tensor& out = r.outputs.begin()->second;
  CHECK(out.dims() == shape{2, 3});
  CHECK(out.values<float>()[5] == 0);
  CHECK(r.stats.chunks == 1);
}

TEST_CASE("a model gives the same result on one device and alternating over three", "[actors][A7][A13]") {
  for (size_t devices : {1, 3}) {
    engine e(reference_engine(devices));
    const session s = e.load(chain(4), {.policy = placement_policy::round_robin, .fuse = false});
    const run_result r = s.run({{"x", floats({2, 3}, {-1, 0, 1, 2, 3, 4})}});
    const tensor out = r.outputs.begin()->second;
    CHECK(out.values<float>()[0] == Approx(sigmoid(sigmoid(-1))));
    CHECK(r.stats.chunks == (devices == 1 ? 1 : 4));
  }
}
