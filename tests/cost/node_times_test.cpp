#include "cost/node_times.hpp"

#include "cost/cost_model.hpp"
#include "support/catch.hpp"
#include "support/graph_builder.hpp"

using namespace troupe;
using Catch::Contains;

namespace {

/// A product of two matrices; a test changes one thing and looks at the identity.
struct product {
  graph g;
  std::vector<shape> dims{{2, 8}, {8, 4}, {2, 4}};

  product() {
    test::graph_builder b;
    const value_id out = b.op("Gemm", {b.value({2, 8}), b.value({8, 4})});
    b.g.values[out].type = dtype::float32;
    g = b.g;
  }

  node& call() { return g.nodes[0]; }
  double seconds(const device_profile& device) {
    return node_seconds(
        g, g.nodes[0], [&](value_id v) { return dims[v]; }, device);
  }
  node_identity identity() {
    return identity_of(g, g.nodes[0], shapes_of(g, g.nodes[0], [&](value_id v) { return dims[v]; }));
  }
};

/// Returns the key of a product to which `change` happened.
template <class Change>
hash128 key_after(Change&& change) {
  product p;
  change(p);
  return p.identity().key;
}

device_profile measured(const measured_nodes& nodes) {
  device_profile device;
  device.launch_s = 1;
  device.memory_bytes_per_s = 1e21;
  device.measured = std::make_shared<const node_times>(nodes);
  return device;
}

hash128 number(uint64_t i) {
  return {.high = i, .low = ~i};
}

} // namespace

TEST_CASE("a measured node takes its measured time, another of its operator a time in proportion", "[cost][A14]") {
  product p;
  device_profile device = measured({.nodes = {{p.identity().key, 0.25}}, .operators = {{"Gemm", {6.0, 2.0}}}});
  CHECK(p.seconds(device) == 0.25);
  p.dims[0] = {3, 8};
  CHECK(p.seconds(device) == Approx(3)); // three times the launch
  p.call().op_type = "MatMul";
  CHECK(p.seconds(device) == Approx(1));
  p.call().domain = "troupe";
  p.call().op_type = "Gemm"; // of another domain
  CHECK(p.seconds(device) == Approx(1));
  device.measured = nullptr;
  CHECK(product().seconds(device) == Approx(1));
}

TEST_CASE("all that decides a node's time decides its key", "[cost][A14]") {
  const hash128 key = product().identity().key;
  CHECK(product().identity().op == "Gemm");
  CHECK(key_after([](product& p) { p.call().name = p.g.values[0].name = "other"; }) == key);
  CHECK(key_after([](product& p) { p.g.values[0].layout = layout::channels_last; }) == key);
  const auto constant = [](float element) {
    return [element](product& p) {
      p.g.values[1].constant = weight::from_tensor(tensor::of<float>({8, 4}, std::vector<float>(32, element)));
    };
  };
  CHECK(key_after(constant(1)) == key_after(constant(2)));

  CHECK_FALSE(key_after(constant(1)) == key);
  CHECK_FALSE(key_after([](product& p) { p.dims[0] = {4, 4}; }) == key);
  CHECK_FALSE(key_after([](product& p) { p.dims[0] = {2, 8, 1}; }) == key);
  CHECK_FALSE(key_after([](product& p) { p.g.values[0].type = dtype::float16; }) == key);
  CHECK_FALSE(key_after([](product& p) { p.call().attrs.set("transB", int64_t{1}); }) == key);
  CHECK_FALSE(key_after([](product& p) { p.call().domain = "troupe"; }) == key);
  CHECK_FALSE(key_after([](product& p) { p.call().inputs.push_back(no_value); }) == key);
  CHECK_FALSE(key_after([](product& p) { std::swap(p.dims[1], p.dims[2]); }) == key);
}

TEST_CASE("a ratio counts tiny nodes as if they took a launch's time by the roofline", "[cost][A14]") {
  const node_times times({.nodes = {}, .operators = {{"Cast", {3e-6, 2e-6}}}});
  const node_identity cast{number(1), "Cast"};
  CHECK(times.seconds(cast, 1e-12) == Approx(1.5e-6));
  CHECK(times.seconds(cast, 1e-3) == Approx(1.5e-3));
}

TEST_CASE("views take no time, whatever was measured", "[cost][A14]") {
  const device_profile device = measured({.operators = {{"Reshape", {3.0, 1.0}}}});
  CHECK(seconds({.launches = false, .identity = std::make_shared<node_identity>(node_identity{{}, "Reshape"})},
                device) == 0);
}

TEST_CASE("calls of other rows are interpolated between those that were measured", "[cost][A14]") {
  product p;
  const auto at = [&](int64_t rows, double seconds) {
    product q;
    q.dims[0][0] = q.dims[2][0] = rows;
    return rows_time{q.identity().family, rows, seconds, 1e-3, 0};
  };
  const device_profile device = measured({.rows = {at(4, 1.0), at(16, 3.0)}});
  const auto seconds = [&](int64_t rows) {
    product q;
    q.dims[0][0] = q.dims[2][0] = rows;
    return q.seconds(device);
  };
  CHECK(p.identity().rows == p.dims[2][0]);
  CHECK(seconds(4) == 1.0);
  CHECK(seconds(10) == Approx(2.0));
  CHECK(seconds(16) == 3.0);
  // Beyond them, in proportion to the roofline, which is a launch of a second here.
  CHECK(seconds(1) == Approx(1000));
  CHECK(seconds(64) == Approx(3000));
  product other; // a row of another size is another family
  other.dims[0][1] = other.dims[1][0] = 9;
  CHECK(other.seconds(device) == Approx(1));
}

TEST_CASE("the spread of repeated measurements is kept", "[cost][A14]") {
  const measured_nodes old{.rows = {{number(1), 4, 1.0, 1e-3, 0.02}, {number(1), 8, 2.0, 1e-3, 0.5}}};
  const measured_nodes both = merge(old, {.rows = {{number(1), 4, 1.25, 1e-3, 0.01}, {number(1), 8, 2.0, 1e-3, 0.1}}});
  REQUIRE(both.rows.size() == 2);
  CHECK(both.rows[0].seconds == 1.25);
  CHECK(both.rows[0].spread == Approx(0.2));
  CHECK(both.rows[1].spread == Approx(0.25));
  CHECK_THROWS_WITH(node_times({.rows = {{number(1), 4, -1, 1e-3, 0}}}), Catch::Contains("for 4 rows"));
}

TEST_CASE("new measurements replace old ones, and the oldest go", "[cost][A14]") {
  const measured_nodes old{.nodes = {{number(1), 1.0}, {number(2), 2.0}},
                           .operators = {{"Conv", {1.5, 1}}, {"Add", {2.5, 2}}}};
  const measured_nodes both =
      merge(old, {.nodes = {{number(1), 4.0}, {number(3), 3.0}}, .operators = {{"Add", {9, 5}}}});
  CHECK(both.nodes == decltype(both.nodes){{number(2), 2.0}, {number(1), 4.0}, {number(3), 3.0}});
  CHECK(both.operators == decltype(both.operators){{"Add", {10.25, 6}}, {"Conv", {1.5, 1}}});

  measured_nodes many;
  for (uint64_t i = 0; i < max_kept_nodes; ++i)
    many.nodes.emplace_back(number(100 + i), 1.0);
  const measured_nodes full = merge(both, many);
  CHECK(full.nodes.size() == max_kept_nodes);
  CHECK(full.nodes.front().first == number(100));
  CHECK_NOTHROW(node_times(full));
  many.nodes.emplace_back(number(1), 1.0);
  CHECK_THROWS_WITH(node_times(many), Contains("at most 20000 nodes"));
}

TEST_CASE("equal tables have equal keys", "[cost][A14]") {
  const measured_nodes some{.nodes = {{number(1), 1.0}}, .operators = {{"Add", {2.0, 1}}}};
  measured_nodes slower = some, other = some;
  slower.nodes[0].second = 2.0;
  other.operators["Add"] = {3.0, 1};
  CHECK(node_times(some).key() == node_times(some).key());
  CHECK_FALSE(node_times(some).key() == node_times(slower).key());
  CHECK_FALSE(node_times(some).key() == node_times(other).key());
}
