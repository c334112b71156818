// Models larger than a GPU's memory limit.
#include "actors/engine_access.hpp"
#include "support/catch.hpp"
#include "support/gpu.hpp"
#include "support/small_models.hpp"

#include <algorithm>
#include <future>

using namespace troupe;

namespace {

/// x [4, 64] → 24 times MatMul with 16 KiB of weights.
graph layered_model() {
  test::graph_builder b;
  value_id v = b.input("x", {4, 64});
  for (int i = 0; i < 24; ++i) {
    std::vector<float> elements(64 * 64);
    for (size_t e = 0; e < elements.size(); ++e)
      elements[e] = 0.03f * static_cast<float>((e * 7 + static_cast<size_t>(i) * 13) % 19) - 0.27f;
    v = b.op("MatMul", {v, b.constant(fmt::format("w{}", i), tensor::of<float>({64, 64}, elements))});
  }
  b.output(v);
  return b.g;
}

std::vector<float> run_on(const engine_options& options, std::shared_ptr<const plan>* used = nullptr) {
  engine e = make_engine(options, {.gpu_validation = test::gpus_are_validated()});
  const session s = e.load(layered_model());
  std::vector<float> elements(4 * 64, 0.01f);
  const named_tensors in{{"x", tensor::of<float>({4, 64}, elements)}};
  const run_result r = s.run(in);
  CHECK(gpu_messages(e).empty());
  if (used)
    *used = plan_of(s, in);
  const auto out = r.outputs.begin()->second.values<float>();
  return {out.begin(), out.end()};
}

} // namespace

TEST_CASE("nodes that a GPU's limit does not hold spill to the other GPU, then to the CPU", "[vulkan][B2][B3]") {
  const std::vector<float> wanted = run_on({.devices = {"cpu"}});
  std::shared_ptr<const plan> p;
  const auto check = [&](std::map<std::string, int64_t> memory) {
    const std::vector<float> got = run_on({.devices = {"vulkan:0*2", "cpu"}, .memory = std::move(memory)}, &p);
    REQUIRE(got.size() == wanted.size());
    for (size_t i = 0; i < got.size(); ++i)
      REQUIRE(got[i] == Approx(wanted[i]).epsilon(1e-3).margin(1e-5));
  };
  check({{"vulkan:0", 256 << 10}});
  CHECK(p->weight_bytes[0] > 0);
  CHECK(p->weight_bytes[0] <= 256 << 10);
  CHECK(p->weight_bytes[1] > 0);
  CHECK(p->weight_bytes[2] == 0);
  check({{"vulkan:0", 128 << 10}, {"vulkan:0#1", 128 << 10}});
  CHECK(p->weight_bytes[2] > 0);
  CHECK(p->remarks.size() == 1);
}

TEST_CASE("runs side by side wait for memory that others hold", "[vulkan][B2][C7]") {
  test::graph_builder b;
  value_id v = b.input("x", {1024, 256});
  for (int i = 0; i < 6; ++i)
    v = b.op(i % 2 ? "Neg" : "Floor", {v});
  b.output(v);
  const graph g = b.g;
  const named_tensors in{{"x", tensor::of<float>({1024, 256}, std::vector<float>(1024 * 256, 1.5f))}};
  const int64_t needed = test::bytes_for_run(g, in, "vulkan:0");
  engine e = make_engine({.devices = {"vulkan:0"}, .memory = {{"vulkan:0", needed + needed / 2}}},
                         {.gpu_validation = test::gpus_are_validated()});
  const session s = e.load(g, {.fuse = false});
  std::vector<std::future<run_result>> runs;
  for (int i = 0; i < 8; ++i)
    runs.push_back(s.run_async(in));
  for (auto& run : runs) {
    const run_result r = run.get();
    const tensor& out = r.outputs.begin()->second;
    CHECK(std::count(out.values<float>().begin(), out.values<float>().end(), -1.0f) == out.size());
  }
  CHECK(plan_of(s, in)->remarks.empty());
  const device_stats stats = e.stats().at(0);
  CHECK(stats.reserved_bytes <= needed + needed / 2);
  CHECK(stats.used_bytes >= stats.arena_bytes);
  CHECK(stats.used_bytes + stats.largest_gap_bytes <= stats.reserved_bytes);
  CHECK(gpu_messages(e).empty());
}

TEST_CASE("plans of other dims let go of memory before anything spills", "[vulkan][B2][B3]") {
  test::graph_builder b;
  value_id v = b.input("x", {dim::symbol("n"), 1024});
  for (const char* op : {"Floor", "Neg", "Ceil"})
    v = b.op(op, {v});
  b.output(v);
  const graph g = b.g;
  const auto ones = [](int64_t n) {
    return named_tensors{{"x", tensor::of<float>({n, 1024}, std::vector<float>(static_cast<size_t>(n) * 1024, 1))}};
  };
  const int64_t needed = test::bytes_for_run(g, ones(1024), "vulkan:0");
  engine e = make_engine({.devices = {"vulkan:0"}, .memory = {{"vulkan:0", needed + needed / 4}}},
                         {.gpu_validation = test::gpus_are_validated()});
  const session s = e.load(g, {.fuse = false});
  for (const int64_t n : {1024, 500, 1024, 300, 900, 1024}) {
    const run_result r = s.run(ones(n));
    const tensor& out = r.outputs.begin()->second;
    CHECK(std::count(out.values<float>().begin(), out.values<float>().end(), -1.0f) == n * 1024);
    CHECK(plan_of(s, ones(n))->remarks.empty());
    CHECK(e.stats().at(0).reserved_bytes <= needed + needed / 4);
  }
  CHECK(gpu_messages(e).empty());
}
