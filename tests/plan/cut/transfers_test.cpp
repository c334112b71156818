// The values that move in a plan, from where to where, and how.
#include "plan/graphs.hpp"
#include "plan/show/print.hpp"
#include "rewrite/rewrite.hpp"
#include "support/catch.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Contains;

namespace {

/// "v1: vulkan:0 → vulkan:1, host_block" for each transfer, in the plan's order.
std::vector<std::string> texts_of(const plan& p) {
  const auto end = [&](const std::optional<chunk_id>& id) {
    return id ? p.devices[p.chunks[*id].device].name : std::string("caller");
  };
  std::vector<std::string> texts;
  for (const transfer& t : p.transfers)
    texts.push_back(
        fmt::format("{}: {} → {}, {}", p.program->values[t.value].name, end(t.from), end(t.to), to_string(t.route)));
  return texts;
}

/// x → n times Neg in a loop; x → "first" → "second", then with the loop's result → "last".
graph loop_and_chain() {
  graph_builder b;
  const value_id n = b.input("n", {}, dtype::int64), given = b.input("x", {4});
  const auto negate = [](test::body_builder& body, value_id, value_id go, value_id v) {
    return std::pair(go, body.op("Neg", {v}));
  };
  b.output(test::add_loop(b, "loop", n, no_value, given, negate));
  b.g = rewrite(b.g, {}); // which infers the body
  const value_id x = b.g.inputs.at(1), negated = b.g.outputs.at(0);
  const auto add = [&](const std::string& name, const op_def& def, std::vector<value_id> inputs) {
    const value_id v = b.node(def, std::move(inputs), {4});
    b.g.values[v].name = name;
    return v;
  };
  b.g.outputs = {add("last", host_op, {add("second", plain_op, {add("first", plain_op, {x})}), negated})};
  return b.g;
}

} // namespace

TEST_CASE("values move directly, or through a host block if a GPU is at an end", "[plan][A4][B4]") {
  const std::vector<placement_pin> pins{{"first", "vulkan:0"}, {"second", "vulkan:1"}, {"Neg*", "cpu#0"}};
  const auto p = make_plan(std::make_shared<const graph>(loop_and_chain()), gpus_and_fallback(2), {.pins = pins});
  verify(*p);
  std::vector<std::string> texts = texts_of(*p);
  std::sort(texts.begin(), texts.end());
  CHECK(texts == std::vector<std::string>{"first: vulkan:0 → vulkan:1, host_block", "last: cpu#0 → caller, direct",
                                          "loop.0: Loop 'loop' → cpu#0, direct", "n: caller → Loop 'loop', direct",
                                          "second: vulkan:1 → cpu#0, host_block", "x: caller → Loop 'loop', direct",
                                          "x: caller → vulkan:0, host_block"});
}

TEST_CASE("a value that a later segment reads comes from the chunk that made it; shapes go to the caller",
          "[plan][C6]") {
  graph_builder b;
  const value_id in = b.input({4});
  const value_id found = b.data_dependent(plain_op, {in});
  const auto p = make_plan(b.done({b.node(plain_op, {found}, {4})}), cpus(1), {});
  verify(*p);
  CHECK(texts_of(*p) == std::vector<std::string>{"v0: caller → cpu#0, direct", "v1: cpu#0 → caller, direct",
                                                 "v1: cpu#0 → cpu#0, direct", "v2: cpu#0 → caller, direct"});
}

TEST_CASE("values of a device of another host move by the remote route", "[plan][B4]") {
  graph_builder b;
  const value_id in = b.input({4});
  const value_id a = b.node(plain_op, {in}, {4});
  const value_id c = b.node(plain_op, {a}, {4});
  std::vector<device_info> devices = cpus(3);
  devices[1].host = devices[2].host = "far";
  const auto p = make_plan(b.done({b.node(plain_op, {c}, {4})}), devices, {placement_policy::round_robin});
  verify(*p);
  CHECK(texts_of(*p) == std::vector<std::string>{"v0: caller → cpu#0, direct", "v1: cpu#0 → cpu#1, remote",
                                                 "v2: cpu#1 → cpu#2, direct", "v3: cpu#2 → caller, remote"});
  CHECK_THAT(to_text(*p), Contains("transfer: v1 float32[4] from cpu#0 (chunk 0) to cpu#1 (chunk 1), remote\n"));
  CHECK_THAT(to_json(*p), Contains("\"route\": \"remote\""));
}
