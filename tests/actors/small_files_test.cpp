// Models of a few bytes or of very many nodes, through the public door: they run, or are refused by an error.
#include "actors/engine_access.hpp"
#include "support/catch.hpp"
#include "support/run_graph.hpp"
#include "support/thrown.hpp"

using namespace troupe;
using namespace troupe::test;

TEST_CASE("a chain of 40,000 nodes over a large constant runs", "[actors][limits]") {
  graph_builder b;
  tensor ones(dtype::float32, {256, 128});
  std::fill_n(ones.mutable_data<float>(), ones.size(), 1.f);
  value_id v = b.constant("w", ones);
  for (int i = 0; i < 40'001; ++i)
    v = b.op("Neg", {v});
  b.output(b.op("Add", {b.input("x", {256, 128}), v}));
  for (const bool fuse : {false, true}) {
    engine e({.devices = {"cpu"}});
    const session s = e.load(b.g, {.fuse = fuse});
    const run_result result = s.run({{"x", ones}});
    const auto y = result.outputs.begin()->second.values<float>();
    CHECK(std::all_of(y.begin(), y.end(), [](float value) { return value == 0; }));
  }
}

TEST_CASE("more memory than there is, asked for by a few bytes, is an error", "[actors][limits]") {
  engine e({.devices = {"cpu"}});
  const auto refused = [&](const tensor& value, const char* op) {
    graph_builder b;
    b.output(b.op(op, {b.constant("value", value), b.integers({int64_t{1} << 40})}));
    return thrown_by([&] { e.load(b.g).run({}); });
  };
  CHECK(refused(tensor::scalar(1.f), "Expand").code() == errc::out_of_memory);
  tensor text(dtype::string, {1});
  CHECK(refused(text, "Expand").code() == errc::out_of_memory);
}
