// Ifs whose branches give different ranks: which nodes move into the branches, which stay outside, which models are
// refused.
#include "ops/onnx/control.hpp"
#include "rewrite/rewrite.hpp"
#include "support/branch_models.hpp"
#include "support/catch.hpp"
#include "support/thrown.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

/// Returns the one If of a graph.
const node& only_if(const graph& g) {
  REQUIRE(count_nodes(g, "If") == 1);
  return *std::find_if(g.nodes.begin(), g.nodes.end(), [](const node& n) { return n.op_type == "If"; });
}

const graph& branch_of(const node& n, size_t branch) {
  return *parse_control(n).bodies[branch].program;
}

} // namespace

TEST_CASE("an output may have another rank in each branch", "[rewrite][control][A14]") {
  squeezed_model b;
  b.output(b.squeezed);
  const graph g = rewrite(b.g, {});
  CHECK_FALSE(g.values[g.outputs[0]].dims);
  CHECK(g.values[g.outputs[0]].type == dtype::float32);
  CHECK(g.values[g.outputs[0]].name == "squeeze.0");
}

TEST_CASE("readers of a result of different ranks move into the branches until ranks agree",
          "[rewrite][control][A14]") {
  squeezed_model b;
  const value_id scaled = b.op("Mul", {b.squeezed, b.scalar(3)});
  const value_id rows = b.op("Reshape", {scaled, b.integers({-1, 4})}, {}, "rows");
  value_id y = rows;
  for (const char* op : {"Softmax", "Tanh", "Neg", "Sigmoid"})
    y = b.op(op, {y});
  b.output(y);
  b.output(b.op("Relu", {b.x}, {}, "beside"));
  const graph g = rewrite(b.g, {.fuse = false});
  const node& choice = only_if(g);
  CHECK(choice.outputs.size() == 1);
  CHECK(g.values[choice.outputs[0]].dims == symbolic_shape{dim::symbol("n"), 4});
  CHECK(count_nodes(g, "Tanh") == 1); // readers move in batches: one more than must
  CHECK(count_nodes(g, "Sigmoid") == 1);
  CHECK(count_nodes(g, "Relu") == 1);
  CHECK(count_nodes(g, "Mul") == 0);
  for (const size_t branch : {else_branch, then_branch}) {
    CHECK(count_nodes(branch_of(choice, branch), "Mul") == 1);
    CHECK(count_nodes(branch_of(choice, branch), "Tanh") == 0);
  }
  CHECK(count_nodes(branch_of(choice, else_branch), "Reshape") == 1); // the other one's changes nothing
}

TEST_CASE("shape arithmetic after a result of different ranks is known in each branch", "[rewrite][control][A14]") {
  squeezed_model b;
  const value_id dims = b.op("Shape", {b.squeezed});
  const value_id wanted = b.op("Concat", {dims, b.integers({1})}, attrs_of({{"axis", int64_t{0}}}));
  const value_id y = b.op("Reshape", {b.op("Neg", {b.x}), wanted});
  b.output(b.op("ReduceSum", {y}, attrs_of({{"keepdims", int64_t{0}}}), "sum"));
  const graph g = rewrite(b.g, {.fuse = false});
  const node& choice = only_if(g);
  CHECK(count_nodes(g, "Neg") == 1); // nothing in it depends on the branch
  CHECK(g.values[choice.outputs[0]].dims == symbolic_shape{});
  CHECK(count_nodes(branch_of(choice, then_branch), "Concat") == 0);
}

TEST_CASE("two results of different ranks that are read together", "[rewrite][control][A14]") {
  squeezed_model b;
  const value_id d = b.input("d", {}, dtype::boolean);
  const value_id other = add_squeeze(b, "other", d, b.op("Neg", {b.x}));
  b.output(b.op("Reshape", {b.op("Add", {b.squeezed, other}), b.integers({-1, 4})}, {}, "sum"));
  const graph g = rewrite(b.g, {.fuse = false});
  CHECK(g.nodes.size() == 2); // Neg and one If around the other
  CHECK(g.values[g.outputs[0]].dims->size() == 2);
  CHECK(count_nodes(branch_of(only_if(g), then_branch), "If") == 1);
}

TEST_CASE("a branch that its readers do not take is refused when it is taken", "[rewrite][control][A14]") {
  squeezed_model b;
  b.output(b.op("Gemm", {b.squeezed, b.constant("w", random_tensor({4, 2}, 1))}, {}, "y"));
  const graph g = rewrite(b.g, {});
  const node& choice = only_if(g);
  const control_call call = parse_control(choice);
  CHECK(call.refusals[then_branch].empty());
  CHECK(call.refusals[else_branch].find("Gemm 'Gemm_y'") != std::string::npos);
  CHECK(g.values[choice.outputs[0]].dims == symbolic_shape{dim::symbol("n"), 2});
}

TEST_CASE("readers that no branch suits are refused by name", "[rewrite][control][A14]") {
  squeezed_model b;
  b.output(b.op("Conv", {b.squeezed, b.constant("w", random_tensor({1, 1, 1, 1}, 1))}, {}, "y"));
  const error problem = thrown_by([&] { rewrite(b.g, {}); });
  INFO(problem.what());
  CHECK(problem.code() == errc::invalid_model);
  CHECK(std::string(problem.what()).find("If 'squeeze': Conv 'Conv_y': ") == 0);
}

TEST_CASE("errors in branches are errors of the model as long as nothing moves into them", "[rewrite][control][A14]") {
  graph_builder b;
  const value_id c = b.input("c", {}, dtype::boolean), x = b.input("x", {2, 3});
  body_builder yes(&b), no(&b);
  yes.output(yes.op("MatMul", {yes.capture(x), yes.capture(x)}));
  no.output(no.capture(x));
  b.output(add_control(b, "If", "choice", {c}, {{"then_branch", &yes}, {"else_branch", &no}}, 1)[0]);
  CHECK(thrown_by([&] { rewrite(b.g, {}); }).code() == errc::invalid_model);
}

TEST_CASE("a branch knows the condition on which it is taken", "[rewrite][control][A14]") {
  squeezed_model b;
  const value_id again = add_squeeze(b, "again", b.c, b.op("Neg", {b.x}));
  b.output(b.op("Add", {b.squeezed, again}));
  const graph g = rewrite(b.g, {.fuse = false});
  for (const size_t branch : {else_branch, then_branch})
    CHECK(count_nodes(branch_of(only_if(g), branch), "If") == 0);
}

TEST_CASE("a value that a Scan carries may not change its rank", "[rewrite][control][A14]") {
  graph_builder b;
  const value_id c = b.input("c", {}, dtype::boolean), x = b.input("x", {dim::symbol("n"), 1, 4});
  body_builder body(&b);
  const value_id v = body.g.add_value({.name = "v", .type = dtype::float32});
  body.g.inputs.push_back(v);
  body.input("element", {1, 4});
  body.output(add_squeeze(body, "squeeze", body.capture(c), v));
  b.output(
      add_control(b, "Scan", "scan", {x, x}, {{"body", &body}}, 1, attrs_of({{"num_scan_inputs", int64_t{1}}}))[0]);
  const error problem = thrown_by([&] { rewrite(b.g, {}); });
  INFO(problem.what());
  CHECK(problem.code() == errc::unsupported);
  CHECK(std::string(problem.what()).find("Scan 'scan': the rank of output 'squeeze.0' of body 'body' is not known") ==
        0);
}

TEST_CASE("many results of different ranks in a row", "[rewrite][control][A14]") {
  const auto chain = [](bool ranks_agree, size_t length) {
    squeezed_model b;
    value_id v = b.x;
    for (size_t i = 0; i < length; ++i) {
      const value_id c = b.input("when" + std::to_string(i), {}, dtype::boolean);
      body_builder yes(&b), no(&b);
      yes.output(yes.op("Unsqueeze", {yes.capture(v), yes.integers({0})}));
      no.output(no.capture(v));
      v = add_control(b, "If", "if" + std::to_string(i), {c}, {{"then_branch", &yes}, {"else_branch", &no}}, 1)[0];
      if (ranks_agree)
        v = b.op("Reshape", {v, b.integers({-1, 1, 4})});
    }
    b.output(v);
    return b.g;
  };
  const graph g = rewrite(chain(true, 100), {.fuse = false});
  CHECK(count_nodes(g, "If") == 100);
  CHECK(count_nodes(rewrite(chain(false, 5), {.fuse = false}), "If") == 1);
  const error problem = thrown_by([&] { rewrite(chain(false, 24), {}); });
  INFO(problem.what());
  CHECK(problem.code() == errc::unsupported);
}
