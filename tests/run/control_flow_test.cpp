// The pure part of control flow: which body comes next, and how scanned values are cut and joined.
#include "run/control_flow.hpp"
#include "support/catch.hpp"
#include "support/control_models.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

/// A Loop node over `carried` values with `scanned` scan outputs; the body's graph has ends only.
node loop_node(size_t carried, size_t scanned) {
  graph_builder b;
  body_builder body(&b);
  std::vector<value_id> inputs{b.input("trips", {}, dtype::int64), b.input("go", {}, dtype::boolean)};
  body.input("i", {}, dtype::int64);
  body.input("go", {}, dtype::boolean);
  for (size_t c = 0; c < carried; ++c) {
    inputs.push_back(b.input("c" + std::to_string(c), {}));
    body.input("c" + std::to_string(c), {});
  }
  for (size_t o = 0; o < 1 + carried + scanned; ++o)
    body.output(body.g.add_value({.name = "o" + std::to_string(o), .type = dtype::float32}));
  add_control(b, "Loop", "loop", inputs, {{"body", &body}}, carried + scanned);
  return b.g.nodes.back();
}

node scan_node(size_t carried, size_t scanned, attributes attrs) {
  graph_builder b;
  body_builder body(&b);
  std::vector<value_id> inputs;
  for (size_t i = 0; i < carried + 1; ++i) {
    inputs.push_back(b.input("x" + std::to_string(i), {}));
    body.input("x" + std::to_string(i), {});
  }
  for (size_t o = 0; o < carried + scanned; ++o)
    body.output(body.g.add_value({.name = "o" + std::to_string(o), .type = dtype::float32}));
  attrs.set("num_scan_inputs", int64_t{1});
  add_control(b, "Scan", "scan", inputs, {{"body", &body}}, carried + scanned, std::move(attrs));
  return b.g.nodes.back();
}

} // namespace

TEST_CASE("a loop hands carried values on and joins scan outputs", "[actors][control][A14]") {
  const node n = loop_node(1, 1);
  control_flow flow(n, {tensor::scalar<int64_t>(3), tensor::scalar(true), floats({}, {10})});
  for (int64_t t = 0; t < 3; ++t) {
    const auto call = flow.next();
    REQUIRE(call);
    CHECK(flow.position() == "iteration " + std::to_string(t));
    REQUIRE(call->inputs.size() == 3);
    CHECK(call->inputs[0].data<int64_t>()[0] == t);
    CHECK(call->inputs[1].data<bool>()[0]);
    CHECK(call->inputs[2].data<float>()[0] == 10 + static_cast<float>(t));
    const auto f = static_cast<float>(t);
    flow.take({tensor::scalar(true), floats({}, {11 + f}), floats({2}, {f, -f})});
  }
  CHECK_FALSE(flow.next());
  const auto results = flow.results({});
  REQUIRE(results.size() == 2);
  CHECK(values_of(results[0]) == std::vector<float>{13});
  CHECK(results[1].dims() == shape{3, 2});
  CHECK(values_of(results[1]) == std::vector<float>{0, 0, 1, -1, 2, -2});
}

TEST_CASE("a loop's iteration number is one element of one dim where the body declares it so", "[actors][control]") {
  const node n = loop_node(1, 0);
  const auto call = parse_control(n);
  graph body = *call.bodies[0].program;
  body.values[body.inputs[0]].dims = symbolic_shape{1};
  CHECK(iteration_dims(body) == shape{1});
  CHECK(iteration_dims(*call.bodies[0].program).empty());
}

TEST_CASE("a loop ends if its condition does, and may have no iteration", "[actors][control][A14]") {
  const node n = loop_node(1, 1);
  SECTION("the condition is false at first") {
    control_flow flow(n, {tensor::scalar<int64_t>(3), tensor::scalar(false), floats({}, {10})});
    CHECK_FALSE(flow.next());
    const auto results = flow.results(std::array{shape{0, 4}});
    CHECK(values_of(results[0]) == std::vector<float>{10});
    CHECK(results[1].dims() == shape{0, 4});
    CHECK(results[1].type() == dtype::float32);
  }
  SECTION("no trips, or fewer than none") {
    for (int64_t trips : {0, -5})
      CHECK_FALSE(control_flow(n, {tensor::scalar(trips), {}, floats({}, {10})}).next());
  }
  SECTION("no bound but the condition") {
    control_flow flow(n, {{}, {}, floats({}, {10})});
    for (int t = 0; t < 5; ++t) {
      REQUIRE(flow.next());
      flow.take({tensor::scalar(t < 4), floats({}, {1}), floats({1}, {0})});
    }
    CHECK_FALSE(flow.next());
    CHECK(flow.executed() == 5);
  }
  SECTION("what is not one element is refused") {
    CHECK_THROWS_WITH(control_flow(n, {tensor(dtype::int64, {2}), {}, floats({}, {1})}),
                      Catch::Contains("trip count has shape [2]"));
    control_flow flow(n, {{}, {}, floats({}, {10})});
    REQUIRE(flow.next());
    CHECK_THROWS_WITH(flow.take({tensor(dtype::boolean, {0}), floats({}, {1}), floats({1}, {0})}),
                      Catch::Contains("condition has shape [0]"));
  }
  SECTION("scan outputs keep their shape") {
    control_flow flow(n, {{}, {}, floats({}, {10})});
    REQUIRE(flow.next());
    flow.take({tensor::scalar(true), floats({}, {1}), floats({1}, {0})});
    CHECK_THROWS_WITH(flow.take({tensor::scalar(true), floats({}, {1}), floats({2}, {0, 0})}),
                      Catch::Contains("scan output 0 has shape [2], but [1]"));
  }
}

TEST_CASE("a scan walks along any axis, forwards and backwards", "[actors][control][A14]") {
  const node n = scan_node(1, 1,
                           attrs_of({{"scan_input_axes", std::vector<int64_t>{1}},
                                     {"scan_input_directions", std::vector<int64_t>{1}},
                                     {"scan_output_axes", std::vector<int64_t>{-1}},
                                     {"scan_output_directions", std::vector<int64_t>{1}}}));
  control_flow flow(n, {floats({}, {0}), floats({2, 3}, {1, 2, 3, 4, 5, 6})});
  std::vector<std::vector<float>> seen;
  while (const auto call = flow.next()) {
    seen.push_back(values_of(call->inputs[1]));
    CHECK(call->inputs[1].dims() == shape{2});
    flow.take({call->inputs[0], call->inputs[1]});
  }
  CHECK(seen == std::vector<std::vector<float>>{{3, 6}, {2, 5}, {1, 4}});
  const auto results = flow.results({});
  CHECK(results[1].dims() == shape{2, 3});
  CHECK(values_of(results[1]) == std::vector<float>{1, 2, 3, 4, 5, 6});
}

TEST_CASE("elements are cut and joined for every type", "[actors][control][A14]") {
  std::vector<std::string> words{"a", "b", "c", "d", "e", "f"};
  const tensor text = tensor::of<std::string>({2, 3}, words);
  for (size_t axis : {0, 1}) {
    std::vector<tensor> cut;
    for (int64_t i = 0; i < text.dims()[axis]; ++i)
      cut.push_back(slice_element(text, axis, i));
    CHECK(std::ranges::equal(stack_elements(cut, axis).values<std::string>(), words));
  }
  CHECK(slice_element(text, 1, 2).values<std::string>()[1] == "f");
  const tensor whole = floats({2, 2}, {1, 2, 3, 4});
  CHECK(slice_element(whole, 0, 1).data() == whole.data<float>() + 2); // not copied
}
