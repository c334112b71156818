// Spilling if a shortage shows late: in segments whose dims are data, and in bodies of control flow.
#include "actors/engine_access.hpp"
#include "support/catch.hpp"
#include "support/control_models.hpp"

using namespace troupe;
using namespace troupe::test;
using Catch::Contains;

namespace {

constexpr int64_t width = 64;
constexpr int64_t layer_bytes = width * width * 4;

/// Adds `layers` times MatMul and Tanh, with weights of `layer_bytes`.
value_id add_layers(graph_builder& b, value_id v, int layers, const std::string& name) {
  for (int i = 0; i < layers; ++i) {
    std::vector<float> elements(width * width);
    for (size_t e = 0; e < elements.size(); ++e)
      elements[e] =
          0.02f * static_cast<float>((e * 7 + static_cast<size_t>(i)) % 19) - 0.18f + 1e-4f * static_cast<float>(i);
    const std::string id = fmt::format("{}{}", name, i);
    const value_id w = b.constant("w_" + id, tensor::of<float>({width, width}, elements));
    v = b.op("Tanh", {b.op("MatMul", {v, w}, {}, "product_" + id)}, {}, id);
  }
  return v;
}

/// Rows with a column for each element of `x` that is not 0: as many as the data says.
value_id add_rows(graph_builder& b, value_id x, const std::string& name) {
  const value_id column =
      b.op("Transpose", {b.op("Cast", {b.op("NonZero", {x}, {}, name)}, attrs_of({{"to", int64_t{1}}}))});
  std::vector<float> weights(width);
  for (size_t i = 0; i < weights.size(); ++i)
    weights[i] = 0.001f * static_cast<float>(i);
  return b.op("MatMul", {column, b.constant("row_" + name, tensor::of<float>({1, width}, weights))});
}

/// x [n] → a row for each element that is not 0 → `layers` layers.
graph rows_model(int layers) {
  graph_builder b;
  b.output(add_layers(b, add_rows(b, b.input("x", {dim::symbol("n")}), "rows"), layers, "y"));
  return b.g;
}

/// `around` layers, then a loop whose body has `inside` layers.
graph loop_model(int around, int inside) {
  graph_builder b;
  const value_id n = b.input("n", {}, dtype::int64), x = b.input("x", {4, width});
  b.output(add_loop(b, "loop", n, no_value, add_layers(b, x, around, "y"),
                    [&](body_builder& body, value_id, value_id go, value_id v) {
                      return std::pair(go, add_layers(body, v, inside, "z"));
                    }));
  return b.g;
}

/// A loop whose body's layers have a row for each element of its value that is not 0; sums them up.
graph loop_with_rows() {
  graph_builder b;
  const value_id n = b.input("n", {}, dtype::int64), x = b.input("x", {dim::symbol("d")});
  b.output(add_loop(b, "loop", n, no_value, x, [&](body_builder& body, value_id, value_id go, value_id v) {
    const value_id rows = add_layers(body, add_rows(body, v, "rows"), 8, "z");
    return std::pair(go, body.op("Add", {v, body.op("ReduceMean", {rows}, attrs_of({{"keepdims", int64_t{0}}}))}));
  }));
  return b.g;
}

named_tensors ones(int64_t count) {
  return {{"x", floats({count}, std::vector<float>(static_cast<size_t>(count), 1))}};
}

named_tensors loop_inputs(int64_t trips, shape dims) {
  std::vector<float> values(static_cast<size_t>(volume(dims)));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = 0.1f * static_cast<float>(i % 21) - 0.95f;
  return {{"n", tensor::scalar(trips)}, {"x", floats(std::move(dims), std::move(values))}};
}

const tensor& only(const run_result& r) {
  return r.outputs.begin()->second;
}

void check_as_unlimited(const graph& g, const session& limited, const named_tensors& inputs) {
  engine e({.devices = {"cpu"}});
  const run_result wanted = e.load(g).run(inputs), got = limited.run(inputs);
  REQUIRE(only(got).dims() == only(wanted).dims());
  for (int64_t i = 0; i < only(got).size(); ++i)
    REQUIRE(only(got).values<float>()[i] == Approx(only(wanted).values<float>()[i]).margin(1e-4));
}

/// How often a device was given work.
int64_t chunks_on(const engine& e, size_t device) {
  return e.stats().at(device).chunks;
}

} // namespace

TEST_CASE("a segment whose dims are data spills", "[actors][B3][D3]") {
  const graph g = rows_model(8);
  engine e({.devices = {"cpu*2"}, .memory = {{"cpu", 10 * layer_bytes}, {"cpu#1", 10 * layer_bytes}}});
  const session s = e.load(g);
  check_as_unlimited(g, s, ones(10));
  CHECK(plan_of(s, ones(10))->remarks.empty());
  CHECK(chunks_on(e, 1) == 0);
  check_as_unlimited(g, s, ones(100));
  CHECK(chunks_on(e, 1) > 0);
  CHECK_THAT(plan_of(s, ones(100))->remarks.at(0), Contains("spilled") && Contains("'cpu#1'"));
  CHECK(s.run(ones(100)).stats.plan_cached); // by the plan that fits, from its beginning
  CHECK(plan_of(s, ones(10))->remarks.empty());
  CHECK_THROWS_WITH(s.run(ones(4000)),
                    Contains("does not fit the devices together") && Contains("'cpu'") && Contains("'cpu#1'"));
  check_as_unlimited(g, s, ones(100));
}

TEST_CASE("a body that is larger than a device spills", "[actors][control][B3][A14]") {
  const graph g = loop_model(0, 20);
  engine e({.devices = {"cpu*2"}, .memory = {{"cpu", 12 * layer_bytes}, {"cpu#1", 12 * layer_bytes}}});
  const session s = e.load(g);
  check_as_unlimited(g, s, loop_inputs(3, {4, width}));
  CHECK(s.run(loop_inputs(3, {4, width})).stats.plan_cached);
  for (const device_stats& device : e.stats()) {
    CHECK(device.weight_bytes > 0);
    CHECK(device.weight_bytes <= 12 * layer_bytes);
  }
  const session larger = e.load(loop_model(0, 40));
  CHECK_THROWS_WITH(larger.run(loop_inputs(3, {4, width})),
                    Contains("Loop 'loop', iteration 0: ") && Contains("does not fit the devices together"));
}

TEST_CASE("a body has the memory that the graph around it leaves", "[actors][control][B2][B3]") {
  const graph g = loop_model(8, 8);
  engine e({.devices = {"cpu*2"}, .memory = {{"cpu", 12 * layer_bytes}, {"cpu#1", 12 * layer_bytes}}});
  const session s = e.load(g);
  check_as_unlimited(g, s, loop_inputs(3, {4, width}));
  for (const device_stats& device : e.stats()) {
    CHECK(device.weight_bytes > 0);
    CHECK(device.weight_bytes <= 12 * layer_bytes);
  }
}

TEST_CASE("a body's later segment spills, its iteration alone starts over", "[actors][control][B3][D3]") {
  const graph g = loop_with_rows();
  engine e({.devices = {"cpu*2"}, .memory = {{"cpu", 10 * layer_bytes}, {"cpu#1", 10 * layer_bytes}}});
  const session s = e.load(g);
  check_as_unlimited(g, s, loop_inputs(4, {10}));
  CHECK(chunks_on(e, 1) == 0);
  check_as_unlimited(g, s, loop_inputs(4, {100}));
  CHECK(chunks_on(e, 1) > 0);
}
