// Small models that would cost gigabytes or minutes before the first run: bounded, or refused with an error that says
// why.
#include "rewrite/rewrite.hpp"
#include "support/catch.hpp"
#include "support/control_models.hpp"
#include "support/thrown.hpp"

using namespace troupe;
using namespace troupe::test;
using Catch::Contains;

namespace {

value_id ones(graph_builder& b, const std::string& name, shape dims) {
  tensor t(dtype::float32, std::move(dims));
  std::fill_n(t.mutable_data<float>(), t.size(), 1.f);
  return b.constant(name, std::move(t));
}

/// Every `step`th element of a vector.
value_id every(graph_builder& b, value_id from, int64_t step) {
  return b.op("Slice", {from, b.integers({0}), b.integers({INT64_MAX}), b.integers({0}), b.integers({step})});
}

} // namespace

TEST_CASE("chains of large constants are folded up to a limit", "[rewrite][limits]") {
  graph_builder b;
  value_id v = ones(b, "w", {256, 128});
  const int length = 40'000;
  for (int i = 0; i < length; ++i)
    v = b.op("Neg", {v});
  b.output(b.op("Add", {b.input("x", {256, 128}), v}));
  const graph g = rewrite(std::move(b.g), {.fuse = false});
  const size_t left = count_nodes(g, "Neg");
  CHECK(left > 0);
  CHECK(left < length);
}

TEST_CASE("the work of folding many large constants is limited together", "[rewrite][limits]") {
  graph_builder b;
  const value_id w = ones(b, "w", {512, 512});
  std::vector<value_id> all{b.input("x", {512, 512})};
  const int count = 3000; // each computes 1 MiB from 1 MiB
  for (int i = 0; i < count; ++i)
    all.push_back(b.op("LeakyRelu", {w}, attrs_of({{"alpha", static_cast<float>(i)}})));
  b.output(b.op("Sum", all));
  const size_t left = count_nodes(rewrite(std::move(b.g), {.fuse = false}), "LeakyRelu");
  CHECK(left > 0);
  CHECK(left < count);
}

TEST_CASE("operators whose result depends on large constant data stay nodes", "[rewrite][limits]") {
  graph_builder b;
  const value_id flags = b.op("ConstantOfShape", {b.integers({int64_t{1} << 29})});
  b.output(b.op("NonZero", {flags}));
  const graph g = rewrite(std::move(b.g), {});
  CHECK(count_nodes(g, "NonZero") == 1);

  graph_builder small;
  const value_id few = small.op("ConstantOfShape", {small.integers({8})});
  small.output(small.op("NonZero", {few}));
  CHECK(count_nodes(rewrite(std::move(small.g), {}), "NonZero") == 0);
}

TEST_CASE("a reduction of a large constant from a tiny file stays a node", "[rewrite][limits]") {
  graph_builder b;
  attributes all;
  all.set("keepdims", int64_t{0});
  const value_id big = b.op("ConstantOfShape", {b.integers({int64_t{1} << 33})});
  b.output(b.op("ReduceSum", {big}, all));
  const graph g = rewrite(std::move(b.g), {});
  CHECK(count_nodes(g, "ReduceSum") == 1);
  CHECK(count_nodes(g, "ConstantOfShape") == 1);
}

TEST_CASE("a product whose sum is astronomically long stays a node", "[rewrite][limits]") {
  graph_builder b;
  attributes equation;
  equation.set("equation", std::string("a,b,c,d->"));
  std::vector<value_id> operands;
  for (const char* name : {"p", "q", "r", "s"})
    operands.push_back(ones(b, name, {50'000}));
  b.output(b.op("Einsum", operands, equation));
  CHECK(count_nodes(rewrite(std::move(b.g), {}), "Einsum") == 1);
}

TEST_CASE("results of many small foldings are bounded together", "[rewrite][limits]") {
  graph_builder b;
  std::vector<value_id> all;
  for (int i = 0; i < 40'000; ++i) { // 64 KiB each
    const value_id fill = b.op("ConstantOfShape", {b.integers({16 * 1024})});
    attributes scale;
    scale.set("alpha", static_cast<float>(i));
    all.push_back(b.op("LeakyRelu", {fill}, scale));
  }
  b.output(b.op("Sum", all));
  const error e = thrown_by([&] { rewrite(std::move(b.g), {}); });
  CHECK(e.code() == errc::unsupported);
  CHECK_THAT(e.what(), Contains("constants"));
}

TEST_CASE("texts in a constant are not repeated without end", "[rewrite][limits]") {
  graph_builder b;
  tensor text(dtype::string, {1});
  *text.mutable_data<std::string>() = std::string(10'000, 'a');
  const value_id wide = b.op("Expand", {b.constant("text", text), b.integers({int64_t{1} << 36})});
  b.output(wide);
  CHECK(count_nodes(rewrite(std::move(b.g), {}), "Expand") == 1);
}

TEST_CASE("symbolic dims that double with each step are refused", "[rewrite][limits]") {
  graph_builder b;
  value_id v = b.input("x", {dim::symbol("n")});
  for (int i = 0; i < 40; ++i)
    v = b.op("Add", {every(b, v, 2), every(b, v, 3)});
  b.output(v);
  const error e = thrown_by([&] { rewrite(std::move(b.g), {}); });
  CHECK(e.code() == errc::unsupported);
  CHECK_THAT(e.what(), Contains("symbolic dim") && Contains("characters") && Contains("fixed dims"));
}

TEST_CASE("shape arithmetic that doubles with each step is left to the run", "[rewrite][limits]") {
  graph_builder b;
  const value_id x = b.input("x", {dim::symbol("n")});
  value_id size = b.op("Shape", {x});
  for (int i = 0; i < 40; ++i)
    size = b.op("Add", {b.op("Div", {size, b.integers({3})}), b.op("Div", {size, b.integers({5})})});
  b.output(b.op("Expand", {x, size}));
  CHECK(count_nodes(rewrite(std::move(b.g), {}), "troupe.Deferred") == 1);
}

TEST_CASE("powers of sums of symbols are left to the run", "[rewrite][limits]") {
  graph_builder b;
  std::vector<value_id> parts;
  for (const char* name : {"p", "q", "r", "s", "t"})
    parts.push_back(b.input(name, {dim::symbol(name)}));
  attributes along;
  along.set("axis", int64_t{0});
  value_id size = b.op("Shape", {b.op("Concat", parts, along)});
  for (int i = 0; i < 12; ++i)
    size = b.op("Mul", {size, size});
  b.output(b.op("ConstantOfShape", {size}));
  CHECK(count_nodes(rewrite(std::move(b.g), {}), "troupe.Deferred") == 1);
}

TEST_CASE("a rank beyond the largest is refused, wherever it comes from", "[rewrite][limits]") {
  graph_builder b;
  const value_id x = b.input("x", {1});
  b.output(b.op("Reshape", {x, b.integers(std::vector<int64_t>(1000, 1))}));
  const error e = thrown_by([&] { rewrite(std::move(b.g), {}); });
  CHECK(e.code() == errc::unsupported);
  CHECK_THAT(e.what(), Contains("rank of 1000"));
}

TEST_CASE("messages about nodes with endless names stay readable", "[rewrite][limits]") {
  graph_builder b;
  const value_id x = b.input(std::string(500'000, 'x'), {2});
  const value_id y = b.op("Add", {x, b.input("y", {3})});
  b.g.nodes.back().name = std::string(1'000'000, 'n');
  b.output(y);
  const error e = thrown_by([&] { rewrite(std::move(b.g), {}); });
  CHECK(e.code() == errc::invalid_model);
  CHECK(std::string_view(e.what()).size() < 2100);
  CHECK_THAT(e.what(), Contains("Add 'nnn") && Contains("broadcast"));
}

TEST_CASE("branches of one name are copied in time linear in their number", "[rewrite][control][limits]") {
  graph_builder b;
  const value_id c = b.constant("c", tensor::scalar(true)), x = b.input("x", {2});
  for (int i = 0; i < 30'000; ++i) { // 450 million guesses, were each name sought from its first number on
    body_builder yes(&b), no(&b);
    yes.output(yes.op("Relu", {yes.capture(x)}, {}, "result"));
    no.output(no.op("Neg", {no.capture(x)}, {}, "result"));
    b.output(add_control(b, "If", "choice", {c}, {{"then_branch", &yes}, {"else_branch", &no}}, 1)[0]);
  }
  const graph g = rewrite(std::move(b.g), {.fuse = false});
  CHECK(count_nodes(g, "If") == 0);
  CHECK(count_nodes(g, "Neg") == 0);
}

TEST_CASE("copies of a body do not multiply endless names", "[rewrite][control][limits]") {
  graph_builder b;
  const std::string endless(60'000, 'n');
  const value_id x = b.input("x", {2});
  b.output(add_loop(b, endless, b.constant("trips", tensor::scalar(int64_t{50})), no_value, x,
                    [&](body_builder& body, value_id, value_id go, value_id v) {
                      return std::pair(go, body.op("Add", {v, v}, {}, endless + "sum"));
                    }));
  const graph g = rewrite(std::move(b.g), {.fuse = false});
  CHECK(count_nodes(g, "Add") == 50);
  size_t characters = 0;
  for (const value& v : g.values)
    characters += v.name.size();
  CHECK(characters < 300'000);
}

namespace {

/// A loop of unknown length whose carried values move on by one place in each iteration, the first of which grows: each
/// is seen to vary only once the one before it is. In its body are 40 more nodes and another such loop, `depth` levels
/// deep.
value_id add_moving_loop(graph_builder& b, value_id trips, value_id start, int depth) {
  constexpr size_t carried = 24;
  body_builder body(&b);
  const std::string level = std::to_string(depth);
  body.input("i" + level, {}, dtype::int64);
  const value_id go = body.input("go" + level, {}, dtype::boolean);
  std::vector<value_id> values;
  for (size_t i = 0; i < carried; ++i) {
    values.push_back(body.g.add_value({.name = fmt::format("v{}.{}", level, i), .type = dtype::float32}));
    body.g.inputs.push_back(values.back());
  }
  body.output(go);
  body.output(body.op("Concat", {values[0], values[0]}, attrs_of({{"axis", int64_t{0}}})));
  for (size_t i = 1; i < carried; ++i)
    body.output(values[i - 1]);
  value_id last = values.back();
  for (int i = 0; i < 40; ++i)
    last = body.op(i % 2 ? "Relu" : "Neg", {last});
  body.output(depth > 1 ? add_moving_loop(body, body.capture(trips), last, depth - 1) : last);
  std::vector<value_id> inputs{trips, no_value};
  inputs.resize(2 + carried, start);
  return add_control(b, "Loop", "loop" + level, inputs, {{"body", &body}}, carried + 1).at(carried - 1);
}

} // namespace

TEST_CASE("bodies inside each other are not inferred without end", "[rewrite][control][limits]") {
  const auto rewrite_moving = [](int depth) {
    graph_builder b;
    const value_id trips = b.input("trips", {}, dtype::int64);
    b.output(add_moving_loop(b, trips, b.input("x", {2}), depth));
    return thrown_by([&] { rewrite(b.g, {}); });
  };
  CHECK(std::string(rewrite_moving(1).what()) == "nothing was thrown");
  const error e = rewrite_moving(3);
  CHECK(e.code() == errc::unsupported);
  CHECK_THAT(e.what(), Contains("inferred too often"));
}

TEST_CASE("control flow that the run decides is bounded in number", "[rewrite][control][limits]") {
  graph_builder b;
  const value_id c = b.input("c", {}, dtype::boolean), x = b.input("x", {2});
  for (int i = 0; i < 2049; ++i) {
    body_builder yes(&b), no(&b);
    yes.output(yes.op("Relu", {yes.capture(x)}));
    no.output(no.op("Neg", {no.capture(x)}));
    b.output(add_control(b, "If", std::to_string(i), {c}, {{"then_branch", &yes}, {"else_branch", &no}}, 1)[0]);
  }
  const error e = thrown_by([&] { rewrite(b.g, {}); });
  CHECK(e.code() == errc::unsupported);
  CHECK_THAT(e.what(), Contains("2048 control-flow nodes"));
}

TEST_CASE("one value with very many readers, and one node with very many operands, take linear time",
          "[rewrite][limits]") {
  graph_builder b;
  const int count = 60'000; // each looking at all others would take minutes
  const value_id y = b.op("Relu", {b.input("x", {4})});
  std::vector<value_id> all;
  for (int i = 0; i < count; ++i)
    all.push_back(b.op("Sigmoid", {b.op("Mul", {y, b.scalar(static_cast<float>(i))})}));
  b.output(b.op("Concat", all, attrs_of({{"axis", int64_t{0}}})));
  CHECK(count_nodes(rewrite(std::move(b.g), {.fuse = true}), "Concat") == 1);
}
