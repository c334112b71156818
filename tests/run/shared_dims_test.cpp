// One name for sizes that differ: sessions run where no node needs them to be equal; where one does, the error names
// it.
#include "run/shared_dims.hpp"

#include "support/catch.hpp"
#include "support/small_models.hpp"
#include "support/thrown.hpp"

using namespace troupe;
using namespace troupe::test;
using Catch::Contains;

namespace {

const dim n = dim::symbol("n"), unknown = dim::symbol("?");

value_info info(const std::string& name, symbolic_shape dims) {
  return {.name = name, .type = dtype::float32, .dims = std::move(dims)};
}

std::string refusal(const session& s, const named_tensors& inputs) {
  const error problem = thrown_by([&] { s.run(inputs); });
  CHECK(problem.code() == errc::invalid_input);
  return problem.what();
}

} // namespace

TEST_CASE("dims of one name that differ are found, but not where the caller states them or an expression needs them",
          "[run][dims]") {
  const std::vector<value_info> inputs = {info("a", {n, 3}), info("b", {unknown, n}), info("c", {unknown})};
  const shape a{2, 3}, b{4, 5}, c{4};
  const auto given = [&](size_t i) { return std::array{&a, &b, &c}.at(i); };
  const shared_dims all(inputs, {});
  CHECK(all.contradicted(given) == std::vector<std::string>{"n"});
  CHECK(all.describe(given) == "'n' is 2 in input 'a', axis 0, and 5 in input 'b', axis 1");
  CHECK(to_string(all.split(1, {"n"})) == "[?, b.1]");
  CHECK(all.contradicted([](size_t) { return nullptr; }).empty());
  CHECK(shared_dims(inputs, {{"n", 2}}).contradicted(given).empty());
  CHECK(shared_dims({info("a", {n, n + 1}), info("b", {n, n})}, {}).contradicted(given).empty());
}

TEST_CASE("one name for sizes that differ is not a contradiction where nothing needs them to be equal", "[run][dims]") {
  graph_builder g;
  const value_id a = g.input("a", {unknown, unknown}), b = g.input("b", {unknown});
  g.g.outputs = {g.op("Relu", {a}, {}, "p"), g.op("Neg", {b}, {}, "q")};
  engine e({.devices = {"cpu"}});
  const session s = e.load(g.g);
  for (const int64_t size : {3, 2, 3}) { // a program for each kind of call, kept
    const tensor x = random_tensor({2, size}, 1), y = random_tensor({4}, 2);
    const auto outputs = s.run({{"a", x}, {"b", y}}).outputs;
    CHECK(outputs.at("p").dims() == shape{2, size});
    CHECK(values_of(outputs.at("q"))[3] == -values_of(y)[3]);
  }
  CHECK(s.run({{"a", random_tensor({2, 2}, 1)}, {"b", random_tensor({2}, 1)}}).outputs.at("q").dims() == shape{2});
}

TEST_CASE("a node that needs dims of one name to be equal is named, with the inputs that differ", "[run][dims]") {
  graph_builder g;
  const value_id a = g.input("a", {n}), b = g.input("b", {n});
  g.output(g.op("Add", {a, b}, {}, "sum"));
  engine e({.devices = {"cpu"}});
  const session s = e.load(g.g);
  CHECK_THAT(refusal(s, {{"a", random_tensor({2}, 1)}, {"b", random_tensor({3}, 1)}}),
             Contains("'n' is 2 in input 'a', axis 0, and 3 in input 'b', axis 0") && Contains("Add 'Add_sum'"));
  CHECK(s.run({{"a", random_tensor({1}, 1)}, {"b", random_tensor({3}, 1)}}).outputs.at("sum").dims() == shape{3});
  CHECK(s.run({{"a", random_tensor({3}, 1)}, {"b", random_tensor({3}, 1)}}).outputs.at("sum").dims() == shape{3});
  const session stated = e.load(g.g, {.dims = {{"n", 3}}});
  CHECK_THAT(refusal(stated, {{"a", random_tensor({1}, 1)}, {"b", random_tensor({3}, 1)}}), Contains("3 expected"));
}
