#include "support/rank_loops.hpp"

#include "support/catch.hpp"
#include "support/thrown.hpp"

namespace troupe::test {
namespace {

value_id add_dim(graph_builder& b, value_id v) {
  return b.op("Unsqueeze", {v, b.integers({0})});
}

/// n times: v gets a dim in front in iteration `at`, and is v + 1.
graph once_by_number(int64_t at) {
  graph_builder b;
  const value_id n = b.input("n", {}, dtype::int64), x = b.input("x", {dim::symbol("rows"), 2});
  b.output(add_loop(b, "loop", n, no_value, x, [&](body_builder& body, value_id i, value_id go, value_id v) {
    const value_id now = body.op("Equal", {i, body.integer(at)});
    body_builder yes(&body), no(&body);
    yes.output(add_dim(yes, yes.capture(v)));
    no.output(no.capture(v));
    const value_id w = add_control(body, "If", "now", {now}, {{"then_branch", &yes}, {"else_branch", &no}}, 1)[0];
    return std::pair(go, body.op("Add", {w, body.scalar(1)}));
  }));
  return b.g;
}

/// m times: v gets n dims more and is v + 1.
graph nested_growth() {
  graph_builder b;
  const value_id m = b.input("m", {}, dtype::int64), n = b.input("n", {}, dtype::int64),
                 x = b.input("x", {dim::symbol("rows"), 2});
  const value_id y = add_loop(b, "outer", m, no_value, x, [&](body_builder& outer, value_id, value_id go, value_id v) {
    const value_id w = add_loop(
        outer, "inner", outer.capture(n), no_value, v,
        [](body_builder& inner, value_id, value_id on, value_id u) { return std::pair(on, add_dim(inner, u)); });
    return std::pair(go, outer.op("Add", {w, outer.scalar(1)}));
  });
  b.output(b.op("Identity", {y}, {}, "y"));
  b.output(b.op("Shape", {y}, {}, "dims"));
  return b.g;
}

/// If c the loop of `growing_rank`, else x.
graph growth_in_branch() {
  graph_builder b;
  const value_id c = b.input("c", {}, dtype::boolean), n = b.input("n", {}, dtype::int64),
                 x = b.input("x", {dim::symbol("rows"), 2});
  body_builder yes(&b), no(&b);
  const auto grow = [](body_builder& body, value_id, value_id go, value_id v) {
    return std::pair(go, add_dim(body, v));
  };
  yes.output(add_loop(yes, "loop", yes.capture(n), no_value, yes.capture(x), grow));
  no.output(no.capture(x));
  const value_id y = add_control(b, "If", "choice", {c}, {{"then_branch", &yes}, {"else_branch", &no}}, 1)[0];
  b.output(b.op("ReduceSum", {y, b.integers({-1})}, attrs_of({{"keepdims", int64_t{0}}}), "sum"));
  return b.g;
}

void check_growing(engine& e, placement_policy policy) {
  const session s = e.load(growing_rank(), {.policy = policy});
  for (const int64_t n : {2, 0, 1, 16, -1}) {
    const tensor y = s.run(rank_inputs(n)).outputs.at("loop.0");
    const auto grown = static_cast<float>(std::max<int64_t>(n, 0));
    CHECK(y.dims().size() == 2 + static_cast<size_t>(grown));
    CHECK(values_of(y) == std::vector<float>{grown, 1 + grown, 2 + grown, 3 + grown});
  }
}

void check_broadened(engine& e, placement_policy policy) {
  const session s = e.load(broadened_once(), {.policy = policy});
  for (const int64_t n : {3, 1, 0, 70}) {
    const named_tensors found = s.run(rank_inputs(n)).outputs;
    const auto added = static_cast<float>(n);
    CHECK(found.at("y").dims() == (n == 0 ? shape{2, 2} : shape{1, 2, 2}));
    CHECK(values_of(found.at("y")) == std::vector<float>{-added, -1 - added, -2 - added, -3 - added});
    CHECK(found.at("loop.1").size() == n);
    if (n > 0)
      CHECK(values_of(found.at("loop.1")).back() == added);
  }
}

void check_once(engine& e, placement_policy policy) {
  for (const int64_t at : {0, 2}) {
    const session s = e.load(once_by_number(at), {.policy = policy});
    for (const int64_t n : {0, 1, 2, 3, 40}) {
      const tensor y = s.run(rank_inputs(n)).outputs.at("loop.0");
      CHECK(y.dims() == (n > at ? shape{1, 2, 2} : shape{2, 2}));
      CHECK(values_of(y)[0] == static_cast<float>(n));
    }
  }
}

void check_nested(engine& e, placement_policy policy) {
  const session s = e.load(nested_growth(), {.policy = policy});
  for (const int64_t m : {2, 0, 1})
    for (const int64_t n : {2, 0, 1}) {
      named_tensors inputs = rank_inputs(n);
      inputs["m"] = count(m);
      const named_tensors found = s.run(inputs).outputs;
      const auto added = static_cast<float>(m);
      CHECK(found.at("y").dims().size() == static_cast<size_t>(2 + m * n));
      CHECK(found.at("dims").size() == 2 + m * n);
      CHECK(values_of(found.at("y")) == std::vector<float>{added, 1 + added, 2 + added, 3 + added});
    }
}

void check_in_branch(engine& e, placement_policy policy) {
  const session s = e.load(growth_in_branch(), {.policy = policy});
  for (const bool c : {true, false})
    for (const int64_t n : {0, 2}) {
      named_tensors inputs = rank_inputs(n);
      inputs["c"] = tensor::scalar(c);
      const tensor sum = s.run(inputs).outputs.at("sum");
      CHECK(sum.dims() == (c && n == 2 ? shape{1, 1, 2} : shape{2}));
      CHECK(values_of(sum) == std::vector<float>{1, 5});
    }
}

} // namespace

graph growing_rank() {
  graph_builder b;
  const value_id n = b.input("n", {}, dtype::int64), x = b.input("x", {dim::symbol("rows"), 2});
  b.output(add_loop(b, "loop", n, no_value, x, [](body_builder& body, value_id, value_id go, value_id v) {
    return std::pair(go, body.op("Add", {add_dim(body, v), body.scalar(1)}));
  }));
  return b.g;
}

graph broadened_once() {
  graph_builder b;
  const value_id n = b.input("n", {}, dtype::int64), x = b.input("x", {dim::symbol("rows"), 2});
  body_builder body(&b);
  body.input("i", {}, dtype::int64);
  const value_id go = body.input("go", {}, dtype::boolean);
  const value_id v = body.g.add_value({.name = "v", .type = dtype::float32});
  body.g.inputs.push_back(v);
  const value_id w = body.op("Add", {v, body.constant("one", floats({1, 1, 1}, {1}))});
  const value_id flat = body.op("Reshape", {w, body.integers({-1})});
  for (const value_id result : {go, w, body.op("Gather", {flat, body.integer(0)})})
    body.output(result);
  const std::vector<value_id> found = add_control(b, "Loop", "loop", {n, no_value, x}, {{"body", &body}}, 2);
  b.output(b.op("Neg", {found[0]}, {}, "y"));
  b.output(found[1]);
  return b.g;
}

named_tensors rank_inputs(int64_t n) {
  return {{"n", count(n)}, {"x", floats({2, 2}, {0, 1, 2, 3})}};
}

void check_rank_loops(engine& e, placement_policy policy) {
  check_growing(e, policy);
  check_broadened(e, policy);
  check_once(e, policy);
  check_nested(e, policy);
  check_in_branch(e, policy);
}

} // namespace troupe::test
