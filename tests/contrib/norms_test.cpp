// Norms of files that ONNX Runtime's optimiser has written.
#include "contrib/contrib_calls.hpp"
#include "support/run_graph.hpp"
#include "troupe/engine.hpp"
#include "troupe/model_builder.hpp"

using namespace troupe;
using namespace troupe::test;
using Catch::Contains;
using troupe::testing::noise;

// The optimiser fuses LayerNormalization into models of all opsets, though ONNX has it from opset 17 on.
TEST_CASE("LayerNormalization of ai.onnx is in models of opsets before 17", "[ops][contrib][loader]") {
  for (const int64_t opset : {1, 9, 11, 16, 17}) {
    graph_builder b(opset);
    const value_id x = b.input("x", {2, 4});
    const value_id scale = b.constant("scale", floats({4}, {1, 2, 3, 4})),
                   bias = b.constant("bias", floats({4}, {0, 0, 1, 0}));
    const value_id norm =
        b.op("LayerNormalization", {x, scale, bias}, attrs_of({{"axis", int64_t{-1}}, {"epsilon", 0.25f}}));
    const tensor y = run_graph(*b.program({norm}), {floats({2, 4}, {-1, 1, -1, 1, 3, 3, 3, 3})})[0];
    const float unit = 1 / std::sqrt(1.25f);
    const std::vector<float> wanted{-unit, 2 * unit, 1 - 3 * unit, 4 * unit, 0, 0, 1, 0};
    for (int64_t i = 0; i < 8; ++i)
      CHECK(y.data<float>()[i] == Approx(wanted[static_cast<size_t>(i)]));
  }
}

TEST_CASE("a skip may have other names for the dims of its input, whose sizes must be equal", "[ops][contrib]") {
  const tensor scale = floats({4}, {1, 2, 3, 4}), x = noise({2, 3, 4}, 1), skip = noise({2, 3, 4}, 2);
  for (const char* op : {"SkipLayerNormalization", "SkipSimplifiedLayerNormalization"}) {
    model_builder m;
    const variable a = m.input("a", dtype::float32, {dim::symbol("batch"), dim::symbol("sequence"), 4}),
                   b = m.input("b", dtype::float32, {dim::symbol("b"), dim::symbol("s"), 4});
    m.output("y", m.call_all(op, {a, b, scale}, {}, {.domain = "com.microsoft"})[0]);
    engine e({.devices = {"cpu"}});
    session s = e.load(m.build());
    const tensor y = s.run({{"a", x}, {"b", skip}}).outputs["y"],
                 want = troupe::testing::call(op, {}, {x, skip, scale})[0];
    REQUIRE(y.dims() == shape{2, 3, 4});
    for (int64_t i = 0; i < y.size(); ++i)
      CHECK(y.data<float>()[i] == Approx(want.data<float>()[i]));
    CHECK_THROWS_AS(s.run({{"a", x.reshaped({1, 6, 4})}, {"b", noise({3, 6, 4}, 2)}}), error);
  }
}
