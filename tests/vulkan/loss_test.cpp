// GPUs that are lost, or do not come back: the right result from the other devices, or one error, and never a hang.
#include "actors/engine_access.hpp"
#include "support/catch.hpp"
#include "support/fault_device.hpp"
#include "support/gpu.hpp"
#include "support/kernel_case.hpp"
#include "support/small_models.hpp"
#include "vulkan/device_choice.hpp"

using namespace std::chrono_literals;
using namespace troupe;
using namespace troupe::test;

namespace {

/// A chain of `length` alternating operators: with round-robin placement a chunk each.
graph chain(int length) {
  graph_builder b;
  value_id v = b.input("x", {4, 4});
  for (int i = 0; i < length; ++i)
    v = b.op(i % 2 ? "Sigmoid" : "Relu", {v});
  b.output(v);
  return b.g;
}

device_factory gpu_that_dies(uint64_t at) {
  return [at] { return open_gpu({.lose_at = at}, "vulkan:0"); };
}

} // namespace

TEST_CASE("a GPU that is lost costs its runs one re-run on the other devices", "[vulkan][A13]") {
  engine plain({.devices = {"cpu"}});
  const named_tensors inputs{{"x", random_floats({4, 4}, 1)}};
  const named_tensors wanted = plain.load(chain(8)).run(inputs).outputs;
  for (const uint64_t at : {1, 2, 4}) {
    engine e = make_engine({.devices = {"cpu"}}, {.custom_devices = {gpu_that_dies(at)}});
    const session model = e.load(chain(8), {.policy = placement_policy::round_robin, .fuse = false});
    const run_result result = model.run(inputs);
    for (const auto& [name, t] : wanted)
      for (int64_t i = 0; i < t.size(); ++i)
        CHECK(result.outputs.at(name).values<float>()[i] == Approx(t.values<float>()[i]));
    CHECK(result.stats.lost_devices == std::vector<std::string>{"vulkan:0"});
    CHECK(model.run(inputs).stats.lost_devices.empty());
  }
}

TEST_CASE("a lost GPU without another device is one error that names it", "[vulkan]") {
  engine e = make_engine({.devices = {}}, {.custom_devices = {gpu_that_dies(1)}});
  const session model = e.load(chain(2), {.fuse = false});
  try {
    model.run({{"x", random_floats({4, 4}, 1)}});
    FAIL("it ran");
  } catch (const error& problem) {
    CHECK(problem.code() == errc::device_lost);
    CHECK(std::string(problem.what()).find("vulkan:0") != std::string::npos);
  }
}

TEST_CASE("a kernel that does not end: deadlines hold, and a silent GPU is given up", "[vulkan][slow]") {
  if (vulkan::is_hardware(gpus()->gpus().at(0).snapshot))
    return; // nothing here takes long on a real GPU; lavapipe takes the place of one that hangs
  graph_builder b;
  const value_id x = b.input("x", {2560, 2560});
  b.output(b.op("MatMul", {b.op("MatMul", {x, x}), x}));
  const graph slow = b.g;
  const named_tensors inputs{{"x", random_floats({2560, 2560}, 1)}};
  engine e({.devices = {"vulkan:0", "cpu"}, .device_timeout = 8s});
  const session model = e.load(slow);
  for (int run = 0; run < 4; ++run) {
    const auto start = std::chrono::steady_clock::now();
    try {
      model.run(inputs, {.timeout = 200ms});
      FAIL("it was faster than expected");
    } catch (const error& problem) {
      CHECK(problem.code() == errc::timeout);
    }
    CHECK(std::chrono::steady_clock::now() - start < 3s);
  }
  const run_result result = model.run(inputs); // after those on the GPU, which is silent for too long
  CHECK(result.stats.lost_devices == std::vector<std::string>{"vulkan:0"});
  engine plain({.devices = {"cpu"}});
  const auto wanted = plain.load(slow).run(inputs).outputs.begin()->second;
  CHECK(result.outputs.begin()->second.values<float>()[12345] == Approx(wanted.values<float>()[12345]).epsilon(1e-3));
}
