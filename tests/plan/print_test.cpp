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
  CHECK_THAT(text, Contains("chunk 0 on cpu#0\n") && Contains("chunk 1 on cpu#1, after 0, makes outputs\n"));
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
