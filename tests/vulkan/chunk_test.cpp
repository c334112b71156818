// Whole chunks on the GPU: order inside a chunk, between chunks, between executions.
#include "actors/engine_access.hpp"
#include "ops/registry.hpp"
#include "plan/bind/bound_plan.hpp"
#include "support/catch.hpp"
#include "support/gpu.hpp"
#include "support/graph_builder.hpp"
#include "support/kernel_case.hpp"
#include "support/run_inline.hpp"

#include <cmath>
#include <future>

using namespace troupe;
using namespace troupe::test;

namespace {

/// y = −x + ⌊x⌋, `length` times: levels that fork and join.
graph forked_chain(const shape& dims, int length) {
  graph_builder b;
  value_id v = b.input("x", to_symbolic(dims));
  for (int i = 0; i < length; ++i)
    v = b.op("Add", {b.op("Neg", {v}), b.op("Floor", {v})}, {}, i + 1 == length ? "y" : "");
  b.output(v);
  return b.g;
}

/// Returns the chain's result for one element.
float chain_of(float x, int length) {
  for (int i = 0; i < length; ++i)
    x = -x + std::floor(x);
  return x;
}

tensor run_chain(const vulkan::vulkan_device_options& options, const tensor& in, int length) {
  const auto gpu = open_gpu(options);
  const auto p = make_plan(inferred_program(forked_chain(in.dims(), length)), {gpu->info()}, {});
  verify(*p);
  REQUIRE(p->chunks.size() == 1);
  CHECK(p->chunks[0].wave_count() == 2 * static_cast<uint32_t>(length));
  inline_runner runner(p, {gpu.get()});
  return runner.run(std::span(&in, 1)).at(0);
}

int64_t wrong_elements(const tensor& got, const tensor& in, int length) {
  int64_t wrong = 0;
  for (int64_t i = 0; i < in.size(); ++i)
    wrong += got.values<float>()[i] != chain_of(in.values<float>()[i], length);
  return wrong;
}

} // namespace

TEST_CASE("barriers order the waves of a GPU chunk", "[vulkan][E1]") {
  const tensor in = random_floats({257, 1031}, 7);
  for (const bool poison : {false, true}) {
    const tensor out = run_chain({.poison = poison, .force_staging = true}, in, 6);
    CHECK(wrong_elements(out, in, 6) == 0);
  }
  CHECK(new_gpu_messages() == "");
}

TEST_CASE("values stay in a GPU's arena until their last reader", "[vulkan][E3]") {
  // Every value but the last few is read again at the end.
  graph_builder b;
  const shape dims{64, 100};
  std::vector<value_id> made{b.input("x", to_symbolic(dims))};
  for (int i = 0; i < 6; ++i)
    made.push_back(b.op("Add", {made.back(), made[0]}));
  for (size_t i = 1; i <= 6; ++i)
    made.push_back(b.op("Add", {made.back(), made[i]}));
  b.output(made.back());
  const auto gpu = open_gpu({.poison = true});
  const auto p = make_plan(inferred_program(b.g), {gpu->info()}, {});
  inline_runner runner(p, {gpu.get()});
  const tensor in = random_integers(dtype::int32, dims, 3, -100, 100);
  tensor floats(dtype::float32, dims);
  for (int64_t i = 0; i < in.size(); ++i)
    floats.mutable_data<float>()[i] = static_cast<float>(in.values<int32_t>()[i]);
  const tensor out = runner.run(std::span(&floats, 1)).at(0);
  int64_t wrong = 0;
  for (int64_t i = 0; i < in.size(); ++i) // 7x, then + 2x + 3x + … + 7x
    wrong += out.values<float>()[i] != 34 * floats.values<float>()[i];
  CHECK(wrong == 0);
}

TEST_CASE("a GPU's completion means that its results are there", "[vulkan][A6]") {
  // Staged: the host copies the results as soon as they are said to be there.
  const tensor in = random_floats({1024, 4096}, 8);
  CHECK(wrong_elements(run_chain({.force_staging = true}, in, 4), in, 4) == 0);
}

TEST_CASE("what the host writes and reads is flushed and invalidated", "[vulkan][A8]") {
  const tensor in = random_floats({40, 1000}, 9);
  for (const bool staging : {false, true})
    CHECK(wrong_elements(run_chain({.force_non_coherent = true, .force_staging = staging}, in, 2), in, 2) == 0);
  CHECK(new_gpu_messages() == "");
}

TEST_CASE("GPU chunks read values that an earlier chunk of the device left", "[vulkan][A3][A8]") {
  engine e = make_engine({.devices = {"vulkan:0*2", "cpu"}}, {.gpu_validation = gpus_are_validated()});
  const session model = e.load(forked_chain({3, 5}, 8), {.policy = placement_policy::round_robin, .fuse = false});
  for (int run = 0; run < 3; ++run) {
    const tensor in = random_floats({3, 5}, static_cast<uint64_t>(run));
    CHECK(wrong_elements(model.run({{"x", in}}).outputs.at("y"), in, 8) == 0);
  }
  CHECK(gpu_messages(e).empty());
}

TEST_CASE("interleaved executions on one GPU session stay apart, memory stays flat", "[vulkan][A11][slow]") {
  constexpr int threads = 8, runs = 1250;
  engine e({.devices = {"vulkan:0"}});
  const session model = e.load(forked_chain({64}, 2), {.fuse = false});
  const auto work = [&](int thread) {
    for (int run = 0; run < runs; ++run) {
      const tensor in = random_floats({64}, static_cast<uint64_t>(thread * runs + run));
      if (wrong_elements(model.run({{"x", in}}).outputs.at("y"), in, 2) != 0)
        return false;
    }
    return true;
  };
  model.run({{"x", random_floats({64}, 0)}});
  std::vector<std::future<bool>> ended;
  for (int t = 0; t < threads; ++t)
    ended.push_back(std::async(std::launch::async, work, t));
  for (auto& each : ended)
    CHECK(each.get());
  // A slot an execution in flight, however many runs there were.
  const device_stats stats = e.stats().at(0);
  CHECK(stats.chunks == threads * runs + 1);
  CHECK(stats.installed_plans == 1);
  CHECK(stats.arena_bytes <= threads * 4 * 256 * 2);
}
