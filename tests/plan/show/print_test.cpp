#include "plan/show/print.hpp"

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

TEST_CASE("a plan prints its waves, and the nodes that no GPU runs", "[plan][B8][E3]") {
  graph_builder b;
  const value_id in = b.input({4});
  const value_id left = b.node(plain_op, {in}, {4}), right = b.node(plain_op, {in}, {4});
  const value_id sum = b.node(plain_op, {left, right}, {4});
  const auto p = make_plan(b.done({b.node(host_op, {sum}, {4})}), gpus_and_fallback(1), {});
  const auto bound = bind_segment(p, 0, {});
  const std::string text = to_text(*p, bound.get());
  CHECK_THAT(text, Contains("chunk 0 on vulkan:0, 3 nodes, 2 waves (2 at most in one), 1 barrier\n"));
  CHECK_THAT(text, Contains("4 nodes in 2 chunks on 2 devices, 1 segment, 1 transfer between devices, 1 barrier\n"));
  CHECK_THAT(text,
             Contains("transfer: v3 float32[4] from vulkan:0 (chunk 0) to cpu#0 (chunk 1), 16 bytes, host_block\n") &&
                 Contains("transfer: v0 float32[4] from caller to vulkan:0 (chunk 0), 16 bytes, host_block\n") &&
                 Contains("transfer: v4 float32[4] from cpu#0 (chunk 1) to caller, 16 bytes, direct\n"));
  CHECK_THAT(text, Contains("placed: 3 nodes on vulkan:0: policy single\n"));
  CHECK_THAT(text, Contains("  wave 1\n  run      test.plain 'n2'"));
  CHECK_THAT(text, Contains("placed: 1 node on cpu#0: only this device can run it: no GPU kernel for test.host\n"));
  CHECK_THAT(text,
             Contains("arena 768 bytes (768 bytes live at most, 1.0 KiB without reuse, 256 bytes saved by reuse)"));
  const auto j = nlohmann::json::parse(to_json(*p, bound.get()));
  CHECK(j["chunks"][0]["wave_begin"] == nlohmann::json{0, 2, 3});
  CHECK(j["chunks"][0]["widest_wave"] == 2);
  CHECK(j["chunks"][0]["barriers"] == 1);
  CHECK(j["chunks"][1]["nodes"][0]["because"] == "only this device can run it: no GPU kernel for test.host");
  CHECK(j["devices"][0]["peak_bytes"] == 768);
  REQUIRE(j["transfers"].size() == 3);
  CHECK(j["transfers"][1]["value"] == "v3");
  CHECK(j["transfers"][1]["from"]["device"] == "vulkan:0");
  CHECK(j["transfers"][1]["to"]["chunk"] == 1);
  CHECK(j["transfers"][1]["bytes"] == 16);
  CHECK(j["transfers"][0]["from"] == nullptr);
  CHECK(j["transfers"][1]["route"] == "host_block");
}

TEST_CASE("a plan is drawn as a graph: every node once, transfers with their bytes", "[plan][B8]") {
  graph_builder b;
  const value_id in = b.input({dim::symbol("n"), 4});
  const value_id left = b.node(plain_op, {in, in}, {dim::symbol("n"), 4});
  const value_id right = b.node(plain_op, {left}, {dim::symbol("n"), 4});
  b.g.nodes[0].name = "quote \" and \\ and {brace";
  const auto p = make_plan(b.done({b.node(plain_op, {left, right}, {4})}), cpus(2), {placement_policy::round_robin});
  const auto count = [](const std::string& text, const std::string& part) {
    size_t found = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
      ++found;
    return found;
  };
  const std::string dot = to_dot(*p, bind_segment(p, 0, {{"n", 2}}).get());
  INFO(dot);
  for (int n = 0; n < 3; ++n)
    CHECK(count(dot, fmt::format("n{} [label=", n)) == 1 + (n == 0)); // in0 too
  CHECK(count(dot, "subgraph cluster_device") == 2);
  CHECK(count(dot, "subgraph cluster_chunk") == p->chunks.size());
  CHECK(count(dot, "quote \\\" and \\\\ and {brace") == 1);
  CHECK(count(dot, "in0 -> n0 [style=dashed, label=\"32 bytes\"]") == 1);
  CHECK(count(dot, "n0 -> n1 [style=dashed, label=\"32 bytes\"]") == 1);
  CHECK(count(dot, "n0 -> n2;") == 1);
  CHECK(count(dot, "n2 -> out0 [style=dashed, label=\"16 bytes\"]") == 1);
  CHECK(count(dot, "\n  }\n") == 2);
  CHECK(count(to_dot(*p), "label=\"[n, 4]\"") == 3);
}

TEST_CASE("one node says where it is and why", "[plan][B8]") {
  graph_builder b;
  const value_id in = b.input({dim::symbol("n"), 4});
  const value_id a = b.node(plain_op, {in}, {dim::symbol("n"), 4});
  b.g.nodes[0].attrs.set("axes", std::vector<int64_t>{1, 2});
  const auto p = make_plan(b.done({b.node(host_op, {a}, {4})}), gpus_and_fallback(1), {});
  const auto bound = bind_segment(p, 0, {{"n", 2}});
  CHECK_THAT(describe_node(*p, "n0", bound.get()),
             Contains("test.plain 'n0', since opset 1\n") && Contains("attribute axes = [1, 2]\n") &&
                 Contains("input  0: v0 float32[2, 4], 32 bytes, a model input\n") &&
                 Contains("on vulkan:0: policy single\n") && Contains("in chunk 0, segment 0, wave 1 of 1\n") &&
                 Contains("cpu#0 could run it too\n"));
  CHECK_THAT(describe_node(*p, "n1"), Contains("input  0: v1 float32[n, 4], made by test.plain 'n0' on vulkan:0\n") &&
                                          Contains("vulkan:0 cannot run it: no GPU kernel for test.host\n") &&
                                          Contains("in chunk 1, segment 0, node 1 of 1\n"));
  CHECK_THROWS_WITH(describe_node(*p, "n"), Contains("no node 'n'") && Contains("'n0', 'n1'"));
}
