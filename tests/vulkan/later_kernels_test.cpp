// Runs that do not wait for the driver's compiler: they take kernels that are there, and the best ones later.
#include "launch/launch_table.hpp"
#include "launch/tiling.hpp"
#include "plan/plan.hpp"
#include "rewrite/rewrite.hpp"
#include "support/catch.hpp"
#include "support/gpu.hpp"
#include "support/kernel_case.hpp"
#include "support/run_graph.hpp"
#include "support/run_inline.hpp"
#include "vulkan/pipelines.hpp"

#include <chrono>
#include <cstring>
#include <thread>

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

std::vector<vulkan::pipeline_key> fill_keys(uint32_t count) {
  std::vector<vulkan::pipeline_key> all;
  for (uint32_t i = 0; i < count; ++i)
    all.push_back({"fill.w32", {7000 + i}, 1});
  return all;
}

/// Waits for a while; returns whether the condition came true.
bool comes_true(const std::function<bool()>& condition) {
  for (int i = 0; i < 6000; ++i, std::this_thread::sleep_for(10ms))
    if (condition())
      return true;
  return false;
}

bool same_bytes(const tensor& a, const tensor& b) {
  return a.type() == b.type() && a.dims() == b.dims() &&
         std::memcmp(a.data(), b.data(), static_cast<size_t>(a.bytes())) == 0;
}

/// A model whose dims `n` and `m` vary: products, a convolution per channel, attention, rows.
graph many_kernels() {
  graph_builder b(23); // which has Attention
  const dim n = dim::symbol("n"), m = dim::symbol("m");
  const value_id x = b.input("x", {n, 64});
  const value_id y = b.op("MatMul", {x, b.constant("w", random_tensor({64, 48}, 1))});
  b.output(b.op("Softmax", {b.op("Relu", {y})}, attrs_of({{"axis", int64_t{-1}}}), "rows"));
  const value_id image = b.input("image", {1, 8, m, m});
  const value_id deep = b.op("Conv", {image, b.constant("v", random_tensor({8, 1, 3, 3}, 2))},
                             attrs_of({{"pads", std::vector<int64_t>(4, 1)}, {"group", int64_t{8}}}));
  b.output(b.op("Conv", {deep, b.constant("u", random_tensor({16, 8, 1, 1}, 3))}, {}, "pixels"));
  const value_id q = b.input("q", {1, 2, n, 32});
  b.output(b.op("Attention", {q, q, q}, {}, "attended"));
  return b.g;
}

std::vector<tensor> inputs_of(int64_t n, int64_t m) {
  return {random_tensor({n, 64}, 4), random_tensor({1, 8, m, m}, 5), random_tensor({1, 2, n, 32}, 6)};
}

} // namespace

TEST_CASE("kernels that can wait are compiled while the caller goes on", "[vulkan][C11]") {
  vulkan::device_context context(gpus(), 0);
  vulkan::pipelines all(context);
  const auto keys = fill_keys(5);
  const auto held = all.prepare(std::span(keys).first(1));
  CHECK(all.prepare_later({{keys[0], 1}}) == nullptr); // it is there
  std::vector<vulkan::wanted_kernel> wanted;
  for (const vulkan::pipeline_key& key : keys)
    wanted.push_back({key, 1});
  wanted.push_back(wanted.back()); // two launches of one kernel
  const auto batch = all.prepare_later(wanted);
  if (batch)
    CHECK(comes_true([&] { return batch->is_done(); }));
  for (const vulkan::pipeline_key& key : keys)
    CHECK(all.is_ready(key));
  CHECK(all.prepare_later(wanted) == nullptr);
  CHECK(all.pending() == 0);
  CHECK(all.size() == 5);
  CHECK(all.find(keys[4]).handle != VK_NULL_HANDLE);
  CHECK(new_gpu_messages() == "");
}

TEST_CASE("kernels that wait are given up with their device", "[vulkan][C11]") {
  vulkan::device_context context(gpus(), 0);
  vulkan::pipelines all(context);
  std::vector<vulkan::wanted_kernel> wanted;
  for (uint32_t i = 0; i < 400; ++i)
    wanted.push_back({{"matmul.f32", {64, 16, 16, 8, 2, 2, i, 0, 0, 0}, 5}, 1});
  CHECK(all.prepare_later(wanted) != nullptr);
}

TEST_CASE("runs whose dims are new are right before and after their kernels are there", "[vulkan][D1][C11]") {
  const auto late = open_gpu({.poison = true, .constant_blocks = true, .kernels = kernel_time::later});
  const auto now = open_gpu({.poison = true, .constant_blocks = true});
  const auto program = std::make_shared<const graph>(rewrite(many_kernels(), {}));
  const auto p = make_plan(program, {late->info()}, {});
  inline_runner runner(p, {late.get()}), others(p, {now.get()});
  const std::vector<std::pair<int64_t, int64_t>> sizes{{40, 12}, {3, 12}, {41, 5}, {1, 30}, {17, 17}, {90, 7}};
  std::vector<std::vector<tensor>> wanted;
  for (const auto& [n, m] : sizes) {
    INFO("n " << n << ", m " << m);
    const std::vector<tensor> inputs = inputs_of(n, m), got = runner.run(inputs);
    wanted.push_back(others.run(inputs));
    const std::vector<tensor> reference = run_graph(*program, inputs);
    for (size_t o = 0; o < got.size(); ++o) {
      check_close(got[o], reference[o], 1e-4, 1e-5);
      check_close(wanted.back()[o], reference[o], 1e-4, 1e-5);
    }
  }
  REQUIRE(comes_true([&] { return late->stats().pending_kernels == 0; }));
  for (int round = 0; round < 2; ++round) // the first takes the compiled kernels, and may ask for more
    for (size_t i = 0; i < sizes.size(); ++i) {
      const auto got = runner.run(inputs_of(sizes[i].first, sizes[i].second));
      REQUIRE(comes_true([&] { return late->stats().pending_kernels == 0; }));
      for (size_t o = 0; o < got.size() && round == 1; ++o)
        CHECK(same_bytes(got[o], wanted[i][o]));
    }
  const int64_t recorded = late->stats().recorded_chunks;
  for (const auto& [n, m] : sizes)
    runner.run(inputs_of(n, m));
  CHECK(late->stats().recorded_chunks == recorded); // nothing is left to improve
  CHECK(new_gpu_messages() == "");
}

TEST_CASE("every way of a product has each tile for few groups and for many", "[launch][ops]") {
  gpu_features gpu{
      .max_group_size = 1024, .shared_bytes = 49152, .float16 = true, .cooperative_matrix = true, .units = 132};
  const product_size size{.m = 8, .n = 512, .k = 512};
  const auto all = list_tilings(size, tile_family::cooperative, true, gpu, way_range::all);
  const auto every = list_tilings(size, tile_family::cooperative, true, gpu, way_range::every);
  const auto has = [&](const tiling& wanted, bool asks) {
    return std::ranges::any_of(every, [&](const tiling& t) {
      return t.constants() == wanted.constants() && t.splits == wanted.splits && t.asks_first == asks;
    });
  };
  for (const tiling& t : all)
    CHECK((has(t, false) && has(t, true)));
  CHECK(every.size() > 2 * all.size()); // slow ones, too
  const std::vector<std::vector<uint32_t>> only{every.back().constants()};
  const auto few = list_tilings(size, tile_family::cooperative, true, gpu, way_range::every, only);
  REQUIRE_FALSE(few.empty());
  for (const tiling& t : few)
    CHECK(t.constants() == only[0]);
}
