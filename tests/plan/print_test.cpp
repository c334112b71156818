#include "plan/print.hpp"

#include "plan/graphs.hpp"
#include "support/catch.hpp"

#include <nlohmann/json.hpp>

using namespace troupe;
using namespace troupe::testing;
using Catch::Contains;

TEST_CASE("a plan prints its devices, chunks and transfers", "[plan][B8]") {
  graph_builder b;
  const value_id in = b.input({dim::symbol("n"), 4});
  const value_id a = b.node(plain_op, {in}, {dim::symbol("n"), 4});
  const value_id c = b.node(view_op, {a}, {dim::symbol("n") * 4});
  b.g.values[in].name = "bad \xff name";
  const auto p = make_plan(b.done({c}), cpus(2), {placement_policy::round_robin});
  const std::string text = to_text(*p);
  CHECK_THAT(text,
             Contains("chunk 0 on cpu#0, 1 node\n") && Contains("chunk 1 on cpu#1, 1 node, after 0, makes outputs\n"));
  CHECK_THAT(text, Contains("upload   v1 float32[n, 4]") &&
                       Contains("run      test.view 'n1' → v2 float32[4*n] (view of v1)"));
  const auto bound = bind_segment(p, 0, {{"n", 2}});
  CHECK_THAT(to_text(*p, bound.get()), Contains("v1 float32[2, 4]") && Contains("arena 0 bytes"));
  const auto j = nlohmann::json::parse(to_json(*p, bound.get()));
  CHECK(j["devices"].size() == 2);
  CHECK(j["chunks"][1]["predecessors"] == nlohmann::json{0});
  CHECK(j["chunks"][1]["nodes"][0]["outputs"][0]["dims"] == nlohmann::json{8});
  CHECK(j["chunks"][1]["uploads"][0] == "v1");
}

TEST_CASE("a plan prints its waves, and what no GPU runs", "[plan][B8][E3]") {
  graph_builder b;
  const value_id in = b.input({4});
  const value_id left = b.node(plain_op, {in}, {4}), right = b.node(plain_op, {in}, {4});
  const value_id sum = b.node(plain_op, {left, right}, {4});
  const auto p = make_plan(b.done({b.node(host_op, {sum}, {4})}), gpus_and_fallback(1), {});
  const auto bound = bind_segment(p, 0, {});
  const std::string text = to_text(*p, bound.get());
  CHECK_THAT(text, Contains("chunk 0 on vulkan:0, 3 nodes, 2 waves (2 at most in one), 1 barriers, one submission\n"));
  CHECK_THAT(text, Contains("  wave 1\n  run      test.plain 'n2'"));
  CHECK_THAT(text, Contains("not on a GPU: 1 node on cpu#0: no GPU kernel for host\n"));
  CHECK_THAT(text, Contains("arena 768 bytes (768 live at most, 1024 without reuse)"));
  const auto j = nlohmann::json::parse(to_json(*p, bound.get()));
  CHECK(j["chunks"][0]["wave_begin"] == nlohmann::json{0, 2, 3});
  CHECK(j["chunks"][0]["widest_wave"] == 2);
  CHECK(j["chunks"][0]["barriers"] == 1);
  CHECK(j["chunks"][1]["nodes"][0]["not_on_gpu"] == "no GPU kernel for host");
  CHECK(j["devices"][0]["peak_bytes"] == 768);
}
