#include "support/branch_runs.hpp"

#include "support/catch.hpp"

namespace troupe::test {
namespace {

/// Where `c`: x is squeezed if its first dim is 1 at run time, else as it is; if not `c`: summed to a scalar.
graph nested_branches() {
  graph_builder b;
  const value_id c = b.input("c", {}, dtype::boolean), x = b.input("x", {dim::symbol("n"), 1, 4});
  body_builder yes(&b), no(&b);
  const value_id inside = yes.capture(x);
  const value_id first = yes.op("Gather", {yes.op("Shape", {inside}), yes.constant("zero", count(0))});
  const value_id single = yes.op("Equal", {first, yes.constant("one", count(1))});
  body_builder drop(&yes), keep(&yes);
  drop.output(drop.op("Squeeze", {drop.capture(inside), drop.integers({0, 1})}));
  keep.output(keep.op("Neg", {keep.capture(inside)}));
  yes.output(add_control(yes, "If", "inner", {single}, {{"then_branch", &drop}, {"else_branch", &keep}}, 1)[0]);
  no.output(no.op("ReduceSum", {no.capture(x)}, attrs_of({{"keepdims", int64_t{0}}})));
  const value_id y = add_control(b, "If", "outer", {c}, {{"then_branch", &yes}, {"else_branch", &no}}, 1)[0];
  b.output(b.op("Add", {y, b.scalar(1)}, {}, "y"));
  b.output(b.op("Size", {y}, {}, "size"));
  return b.g;
}

/// Two Ifs of one condition: their results fit together only if the same branch is taken of both.
void check_same_condition(engine& e, placement_policy policy) {
  squeezed_model b;
  const value_id again = add_squeeze(b, "again", b.c, b.op("Neg", {b.x}));
  b.output(b.op("Add", {b.squeezed, again}, {}, "zeros"));
  const session s = e.load(b.g, {.policy = policy});
  for (const bool c : {true, false}) {
    const tensor y = s.run(squeezed_inputs(c)).outputs.at("zeros");
    CHECK(y.dims() == (c ? shape{2, 4} : shape{2, 1, 4}));
    CHECK(values_of(y) == std::vector<float>(8, 0));
  }
}

void check_nested(engine& e, placement_policy policy) {
  const session s = e.load(nested_branches(), {.policy = policy});
  const auto run = [&](bool c, int64_t rows) {
    tensor x(dtype::float32, {rows, 1, 4});
    for (int64_t i = 0; i < x.size(); ++i)
      x.mutable_data<float>()[i] = static_cast<float>(i);
    return s.run({{"c", tensor::scalar(c)}, {"x", x}}).outputs;
  };
  CHECK(run(true, 1).at("y").dims() == shape{4});
  CHECK(values_of(run(true, 1).at("y")) == std::vector<float>{1, 2, 3, 4});
  CHECK(run(true, 2).at("y").dims() == shape{2, 1, 4});
  CHECK(values_of(run(true, 2).at("y")) == std::vector<float>{1, 0, -1, -2, -3, -4, -5, -6});
  CHECK(run(false, 2).at("y").dims() == shape{});
  CHECK(values_of(run(false, 2).at("y")) == std::vector<float>{29});
  CHECK(run(true, 2).at("size").data<int64_t>()[0] == 8);
  CHECK(run(false, 2).at("size").data<int64_t>()[0] == 1);
}

/// n times: v is x · (i + 1) if i is even, else its first row alone; branches of different ranks between.
graph loop_with_branches() {
  graph_builder b;
  const value_id n = b.input("n", {}, dtype::int64), x = b.input("x", {dim::symbol("rows"), 1, 4});
  const value_id start = b.op("Reshape", {x, b.integers({-1, 4})});
  b.output(add_loop(b, "loop", n, no_value, start, [&](body_builder& body, value_id i, value_id go, value_id v) {
    const value_id odd = body.op("Cast", {body.op("Mod", {i, body.constant("two", count(2))})},
                                 attrs_of({{"to", static_cast<int64_t>(dtype::boolean)}}));
    body_builder first(&body), more(&body);
    first.output(first.op("Gather", {first.capture(v), first.constant("zero", count(0))}));
    more.output(more.op("Concat", {more.capture(v), more.capture(v)}, attrs_of({{"axis", int64_t{0}}})));
    const value_id rows =
        add_control(body, "If", "rows", {odd}, {{"then_branch", &first}, {"else_branch", &more}}, 1)[0];
    const value_id sum = body.op("Add", {rows, body.scalar(1)});
    return std::pair(go, body.op("Reshape", {sum, body.integers({-1, 4})}));
  }));
  return b.g;
}

void check_loop(engine& e, placement_policy policy) {
  const session s = e.load(loop_with_branches(), {.policy = policy});
  const auto run = [&](int64_t n) {
    return s.run({{"n", count(n)}, {"x", squeezed_inputs(true).at("x")}}).outputs.at("loop.0");
  };
  CHECK(values_of(run(0)) == std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(run(1).dims() == shape{4, 4});
  CHECK(values_of(run(2)) == std::vector<float>{2, 3, 4, 5});
  CHECK(run(3).dims() == shape{2, 4});
  CHECK(values_of(run(4)) == std::vector<float>{4, 5, 6, 7});
}

} // namespace

graph branch_chain() {
  squeezed_model b;
  const value_id positive = b.op("Relu", {b.squeezed});
  b.output(b.op("Mul", {positive, b.scalar(2)}, {}, "scaled"));
  b.output(b.op("ReduceSum", {b.g.outputs[0], b.integers({-1})}, attrs_of({{"keepdims", int64_t{0}}}), "sum"));
  return b.g;
}

void check_branch_chain(const run_result& r, bool c) {
  CHECK(r.outputs.at("scaled").dims() == (c ? shape{2, 4} : shape{2, 1, 4}));
  CHECK(values_of(r.outputs.at("scaled")) == std::vector<float>{0, 2, 4, 6, 8, 10, 12, 14});
  CHECK(r.outputs.at("sum").dims() == (c ? shape{2} : shape{2, 1}));
  CHECK(values_of(r.outputs.at("sum")) == std::vector<float>{12, 44});
}

void check_branch_models(engine& e, placement_policy policy) {
  const session chain = e.load(branch_chain(), {.policy = policy});
  for (const bool c : {true, false, true})
    check_branch_chain(chain.run(squeezed_inputs(c)), c);
  check_same_condition(e, policy);
  check_nested(e, policy);
  check_loop(e, policy);
}

} // namespace troupe::test
