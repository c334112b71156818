// How many iterations of a Loop predictions count on.
#include "plan/estimate/gpu_support.hpp"
#include "plan/estimate/predict.hpp"
#include "plan/graphs.hpp"
#include "rewrite/rewrite.hpp"
#include "support/catch.hpp"
#include "support/control_models.hpp"

#include <limits>

using namespace troupe;

namespace {

using count_maker = std::function<value_id(test::graph_builder&, value_id x)>;

count_maker constant(int64_t n) {
  return [n](test::graph_builder& b, value_id) { return b.constant("count", test::count(n)); };
}

/// Returns by how much a Loop is predicted to take longer than one of no iterations, in times of its body.
double predicted_trips(const count_maker& count_of, const bindings& expected = {}) {
  const auto seconds = [&](const count_maker& count) {
    test::graph_builder b;
    const value_id x = b.input("x", {dim::symbol("rows"), 4});
    const value_id start = b.input("start", {4});
    b.output(test::add_loop(
        b, "loop", count(b, x), no_value, start, [](test::body_builder& body, value_id, value_id, value_id v) {
          return std::pair(body.op("Cast", {body.op("ReduceMax", {v}, test::attrs_of({{"keepdims", int64_t{0}}}))},
                                   test::attrs_of({{"to", int64_t{9}}})),
                           body.op("Exp", {v}));
        }));
    std::vector<device_info> devices = testing::cpus(1);
    devices[0].profile.chunk_s = 0;
    const auto p = make_plan(std::make_shared<const graph>(rewrite(b.g, {})), devices, {.expected = expected});
    REQUIRE(p->bodies.size() == 1);
    return predict(*p, expected_dims(*p->program, expected)).makespan_s;
  };
  // Few iterations would be unrolled beforehand.
  const double body = (seconds(constant(200)) - seconds(constant(100))) / 100;
  return (seconds(count_of) - (seconds(constant(100)) - 100 * body)) / body;
}

} // namespace

TEST_CASE("a Loop's trip count is read if the model states it", "[plan][cost][control][C10]") {
  CHECK(predicted_trips(constant(1000)) == Approx(1000));
  CHECK(predicted_trips(constant(-5)) == Approx(0).margin(0.01));
  // The trip count that while-loops state means nothing.
  CHECK(predicted_trips(constant(std::numeric_limits<int64_t>::max())) == Approx(representative_dim));
  CHECK(predicted_trips([](test::graph_builder& b, value_id) { return b.input("n", {}, dtype::int64); }) ==
        Approx(representative_dim));
}

TEST_CASE("a trip count that is a dim is that of the first run", "[plan][cost][control][C10]") {
  const auto rows = [](test::graph_builder& b, value_id x) {
    return b.op("Gather", {b.op("Shape", {x}), b.constant("zero", test::count(0))});
  };
  CHECK(predicted_trips(rows, {{"rows", 77}}) == Approx(77));
  CHECK(predicted_trips(rows) == Approx(representative_dim));
}
