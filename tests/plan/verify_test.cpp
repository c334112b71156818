// Plans that are broken by hand: `verify` finds each defect and names it.
#include "plan/graphs.hpp"
#include "support/catch.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Contains;

namespace {

/// n0 on device 0 → n1 on device 1 → n2 on device 0, n3 on device 1 from n0: four chunks.
plan good_plan(const std::vector<device_info>& devices = cpus(2)) {
  graph_builder b;
  const value_id in = b.input({4});
  const value_id a = b.node(plain_op, {in}, {4});
  const value_id c = b.node(plain_op, {a}, {4});
  const value_id d = b.node(plain_op, {c, a}, {4});
  return *make_plan(b.done({b.node(plain_op, {d, a}, {4})}), devices, {placement_policy::round_robin});
}

/// Returns the defect that `verify` finds in the plan after `breaking`.
std::string defect(const std::function<void(plan&)>& breaking, const std::vector<device_info>& devices = cpus(2)) {
  plan p = good_plan(devices);
  verify(p);
  breaking(p);
  try {
    verify(p);
  } catch (const error& e) {
    CHECK(e.code() == errc::internal);
    return e.what();
  }
  return "nothing was found";
}

/// Changes the plan's graph.
void edit_graph(plan& p, const std::function<void(graph&)>& edit) {
  auto g = std::make_shared<graph>(*p.program);
  edit(*g);
  p.program = g;
}

} // namespace

TEST_CASE("a plan without a chunk that can start is found", "[plan][A12][D8]") {
  CHECK_THAT(defect([](plan& p) {
               for (chunk& c : p.chunks)
                 c.initial_dependency_count = 1;
             }),
             Contains("segment 0 has no chunk that can start"));
}

TEST_CASE("a tensor with two writers is found", "[plan][A12]") {
  CHECK_THAT(defect([](plan& p) { edit_graph(p, [](graph& g) { g.nodes[2].outputs = g.nodes[1].outputs; }); }),
             Contains("test.plain 'n2' writes 'v2', which test.plain 'n1' writes already"));
  CHECK_THAT(defect([](plan& p) {
               edit_graph(p, [](graph& g) { g.values[g.nodes[0].outputs[0]].constant = std::make_shared<weight>(); });
             }),
             Contains("test.plain 'n0' writes 'v1', which is constant"));
  CHECK_THAT(defect([](plan& p) { p.producer[p.program->nodes[0].outputs[0]] = 1; }),
             Contains("test.plain 'n0' writes 'v1', but the plan's tables say otherwise"));
}

TEST_CASE("an operation in two chunks, or in none, is found", "[plan][A12]") {
  CHECK_THAT(defect([](plan& p) { p.chunks[2].nodes.push_back(p.chunks[0].nodes[0]); }),
             Contains("chunk 2: test.plain 'n0' is in chunk 0 already"));
  CHECK_THAT(defect([](plan& p) { p.chunks[3].nodes.clear(); }), Contains("test.plain 'n3' is in no chunk"));
  CHECK_THAT(defect([](plan& p) { p.chunks[3].nodes.push_back(99); }), Contains("chunk 3: node 99 does not exist"));
  CHECK_THAT(defect([](plan& p) { p.placement[3] = 0; }), Contains("chunk 3: test.plain 'n3' is placed elsewhere"));
}

TEST_CASE("broken dependencies between chunks are found", "[plan][A12][C5]") {
  CHECK_THAT(defect([](plan& p) { p.chunks[1].initial_dependency_count = 0; }),
             Contains("chunk 1: it counts 0 dependencies but has 1"));
  CHECK_THAT(defect([](plan& p) {
               p.chunks[1].predecessors = {2};
               p.chunks[0].dependents = {2};
             }),
             Contains("chunk 1: predecessor 2 does not come before it"));
  CHECK_THAT(defect([](plan& p) { p.chunks[1].predecessors = {2}; }),
             Contains("chunk 0: dependent 1 does not list it as predecessor"));
  CHECK_THAT(defect([](plan& p) { p.chunks[0].dependents.clear(); }),
             Contains("chunk 1: predecessor 0 does not list it as dependent"));
  CHECK_THAT(defect([](plan& p) { p.chunks[0].device = 7; }), Contains("chunk 0: device 7 does not exist"));
  CHECK_THAT(defect([](plan& p) { p.chunks[0].segment = 3; }), Contains("chunk 0: it is outside its segment 3"));
  CHECK_THAT(defect([](plan& p) { p.segment_begin = {0, 9}; }), Contains("tables do not fit"));
}

TEST_CASE("values that are not where they are read are found", "[plan][A12][B4]") {
  CHECK_THAT(defect([](plan& p) { p.chunks[1].uploads.clear(); }),
             Contains("chunk 1: test.plain 'n1' reads 'v1', which is not on its device"));
  CHECK_THAT(defect([](plan& p) { p.chunks[3].uploads.push_back(p.chunks[1].uploads[0]); }),
             Contains("chunk 3: 'v1' is moved to the device twice"));
  CHECK_THAT(defect([](plan& p) { p.chunks[0].downloads.clear(); }),
             Contains("chunk 1: 'v1' is not downloaded by chunk 0, which makes it"));
  CHECK_THAT(defect([](plan& p) { p.chunks[3].downloads.clear(); }), Contains("chunk 3: no output depends on it"));
  CHECK_THAT(defect([](plan& p) { p.chunks[1].downloads.push_back(p.chunks[0].downloads[0]); }),
             Contains("chunk 1: it downloads 'v1', which it does not make"));
}

TEST_CASE("transfers that do not fit the chunks are found", "[plan][A12]") {
  CHECK_THAT(defect([](plan& p) { p.transfers.pop_back(); }), Contains("no transfer leads 'v4' to where it is needed"));
  CHECK_THAT(defect([](plan& p) { p.transfers.push_back(p.transfers[0]); }),
             Contains("a transfer of value 0 leads to a device that does not need it, or has it already"));
  CHECK_THAT(defect([](plan& p) { p.transfers[1].from = 2; }),
             Contains("a transfer of 'v1' does not begin at the chunk that makes it"));
  CHECK_THAT(defect([](plan& p) { p.transfers[1].route = transfer_route::host_block; }),
             Contains("a transfer of 'v1' is host_block, but its ends need direct"));
}

TEST_CASE("waves that do not cover their chunk, or read too early, are found", "[plan][A12][E1]") {
  graph_builder b;
  const value_id in = b.input({4});
  const value_id a = b.node(plain_op, {in}, {4});
  const auto good = make_plan(b.done({b.node(plain_op, {a}, {4})}), gpus(1), {});
  REQUIRE(good->chunks[0].wave_begin == std::vector<uint32_t>{0, 1, 2});
  plan p = *good;
  p.chunks[0].wave_begin = {0, 2};
  CHECK_THROWS_WITH(verify(p), Contains("reads 'v1', which is made in wave 0, not before its own wave 0"));
  p.chunks[0].wave_begin = {0, 1};
  CHECK_THROWS_WITH(verify(p), Contains("its waves do not cover its nodes"));
}
