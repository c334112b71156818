// Each fusion: fused = unfused on random data of odd sizes, and the pattern is found.
#include "rewrite/rewrite.hpp"
#include "support/catch.hpp"
#include "support/run_graph.hpp"

using namespace troupe;
using namespace troupe::test;

TEST_CASE("Conv takes in batch norm, bias, residual and activation", "[rewrite][A4]") {
  graph_builder b;
  const value_id x = b.input("x", {2, 3, 9, 7}), skip = b.input("skip", {2, 5, 9, 7});
  const auto vector = [&](const std::string& name, uint32_t seed) {
    return b.constant(name, random_tensor({5}, seed));
  };
  tensor variance = random_tensor({5}, 14);
  for (int64_t i = 0; i < 5; ++i)
    variance.mutable_data<float>()[i] = std::abs(variance.data<float>()[i]) + 0.1f;
  value_id y =
      b.op("Conv", {x, b.constant("w", random_tensor({5, 3, 3, 3}, 1)), b.constant("b", random_tensor({5}, 2))},
           attrs_of({{"pads", std::vector<int64_t>{1, 1, 1, 1}}}));
  y = b.op("BatchNormalization",
           {y, vector("scale", 11), vector("shift", 12), vector("mean", 13), b.constant("var", variance)});
  y = b.op("Add", {y, b.constant("more", random_tensor({5, 1, 1}, 15))});
  y = b.op("Add", {skip, y});
  y = b.op("Clip", {y, b.scalar(0), b.scalar(6)}, {}, "y");
  b.output(y);
  const graph fused = check_fusion(b.g, {random_tensor({2, 3, 9, 7}, 3), random_tensor({2, 5, 9, 7}, 4)});
  REQUIRE(fused.nodes.size() == 1);
  CHECK(count_nodes(fused, "troupe.Conv") == 1);
  CHECK(fused.nodes[0].name.find("+bn") != std::string::npos);
}

TEST_CASE("Conv takes in a number's product and sum, and a hard swish of several nodes", "[rewrite]") {
  for (const bool transposed : {false, true})
    for (const bool has_bias : {false, true})
      for (const int order : {0, 1, 2}) {
        INFO(transposed << has_bias << order);
        graph_builder b;
        std::vector<value_id> operands{b.input("x", {2, 4, 6, 5}), b.constant("w", random_tensor({4, 2, 3, 3}, 1))};
        if (has_bias)
          operands.push_back(b.constant("b", random_tensor({4}, 2)));
        value_id y = b.op(transposed ? "ConvTranspose" : "Conv", operands, attrs_of({{"group", int64_t{2}}}));
        y = b.op("Mul", {b.constant("scale", floats({1}, {1.5f})), y});
        y = b.op("Add", {y, b.constant("shift", floats({1, 1, 1, 1}, {-0.25f}))});
        const value_id gate = b.op("Clip", {b.op("Add", {y, b.scalar(3)}), b.scalar(0), b.scalar(6)});
        if (order == 0)
          y = b.op("Div", {b.op("Mul", {y, gate}), b.scalar(6)});
        else if (order == 1)
          y = b.op("Mul", {b.op("Div", {gate, b.scalar(6)}), y});
        else
          y = b.op("Mul", {b.op("Mul", {y, b.scalar(1.f / 6)}), gate});
        b.output(y);
        const graph fused = check_fusion(b.g, {random_tensor({2, 4, 6, 5}, 3)});
        CHECK(fused.nodes.size() == 1);
      }
}

TEST_CASE("ConvTranspose takes in batch norm and Relu", "[rewrite]") {
  graph_builder b;
  const value_id x = b.input("x", {1, 3, 5, 4});
  const auto vector = [&](const std::string& name, tensor t) { return b.constant(name, std::move(t)); };
  tensor variance(dtype::float32, {2});
  variance.mutable_data<float>()[0] = 0.5f;
  variance.mutable_data<float>()[1] = 2;
  value_id y = b.op("ConvTranspose", {x, b.constant("w", random_tensor({3, 2, 2, 2}, 1))},
                    attrs_of({{"strides", std::vector<int64_t>{2, 2}}}));
  y = b.op("BatchNormalization", {y, vector("s", random_tensor({2}, 2)), vector("h", random_tensor({2}, 3)),
                                  vector("m", random_tensor({2}, 4)), vector("v", variance)});
  b.output(b.op("Relu", {y}));
  const graph fused = check_fusion(b.g, {random_tensor({1, 3, 5, 4}, 5)});
  CHECK(fused.nodes.size() == 1);
  CHECK(count_nodes(fused, "troupe.ConvTranspose") == 1);
}

TEST_CASE("QuickGelu ends a product and joins a chain", "[rewrite]") {
  graph_builder b;
  b.g.opsets["com.microsoft"] = 1;
  const value_id x = b.input("x", {5, 12});
  const value_id product = b.op("MatMul", {x, b.constant("w", random_tensor({12, 7}, 1))});
  b.output(b.call("QuickGelu", {product}, {"y"}, {}, "com.microsoft")[0]);
  b.output(b.op("Exp", {b.call("QuickGelu", {b.op("Abs", {x})}, {"z"}, {}, "com.microsoft")[0]}));
  const graph fused = check_fusion(b.g, {random_tensor({5, 12}, 2)});
  CHECK(fused.nodes.size() == 2);
  CHECK(count_nodes(fused, "troupe.MatMul") == 1);
  CHECK(count_nodes(fused, "troupe.Elementwise") == 1);
}

TEST_CASE("a value that other nodes read is not fused away", "[rewrite]") {
  graph_builder b;
  const value_id x = b.input("x", {1, 3, 5, 5});
  const value_id y = b.op("Conv", {x, b.constant("w", random_tensor({4, 3, 1, 1}, 1))}, {}, "y");
  b.output(y); // a graph output
  b.output(b.op("Relu", {y}, {}, "z"));
  const graph fused = check_fusion(b.g, {random_tensor({1, 3, 5, 5}, 2)});
  CHECK(count_nodes(fused, "Conv") == 1);
  CHECK(count_nodes(fused, "Relu") == 1);
}

TEST_CASE("MatMul takes in bias, residual, activation; Gemm between reshapes moves to three dims", "[rewrite][A4]") {
  graph_builder b;
  const value_id x = b.input("x", {dim(1), dim::symbol("seq"), 12});
  const value_id h = b.op("Add", {b.constant("bias", random_tensor({7}, 2)),
                                  b.op("MatMul", {x, b.constant("w", random_tensor({12, 7}, 1))})});
  const value_id flat = b.op("Reshape", {b.op("Relu", {h}), b.integers({-1, 7})});
  const value_id g =
      b.op("Gemm", {flat, b.constant("w2", random_tensor({12, 7}, 3)), b.constant("b2", random_tensor({12}, 4))},
           attrs_of({{"transB", int64_t{1}}}));
  b.output(b.op("Add", {b.op("Reshape", {g, b.integers({1, -1, 12})}), x}));
  const graph fused = check_fusion(b.g, {random_tensor({1, 5, 12}, 5)});
  CHECK(count_nodes(fused, "troupe.MatMul") == 2);
  CHECK(count_nodes(fused, "Add") == 0);
  CHECK(count_nodes(fused, "Reshape") == 0);
}

TEST_CASE("a Reshape to other rows without columns stays after its product", "[rewrite]") {
  graph_builder b;
  const value_id x = b.input("x", {1, 4});
  const value_id rows =
      b.op("Reshape", {b.op("MatMul", {x, b.constant("w", tensor(dtype::float32, {4, 0}))}), b.integers({3, 0})},
           attrs_of({{"allowzero", int64_t{1}}}));
  b.output(b.op("Relu", {rows}));
  CHECK(count_nodes(check_fusion(b.g, {random_tensor({1, 4}, 1)}), "Reshape") == 1);
}

TEST_CASE("MatMul reads a transposed operand where it is", "[rewrite]") {
  graph_builder b;
  const value_id x = b.input("x", {2, 3, 5}), y = b.input("y", {2, 4, 5});
  b.output(b.op("MatMul", {x, b.op("Transpose", {y}, attrs_of({{"perm", std::vector<int64_t>{0, 2, 1}}}))}));
  const value_id big = b.constant("big", random_tensor({300, 5}, 1)); // no eager folding: 300 × 5 is small, see below
  b.output(b.op("MatMul", {x, b.op("Transpose", {big}, attrs_of({{"perm", std::vector<int64_t>{1, 0}}}))}));
  const graph fused = check_fusion(b.g, {random_tensor({2, 3, 5}, 2), random_tensor({2, 4, 5}, 3)});
  CHECK(count_nodes(fused, "Transpose") == 0);
  CHECK(count_nodes(fused, "troupe.MatMul") == 1);
}

TEST_CASE("a product that is only read in parts becomes a product for each", "[rewrite]") {
  graph_builder b;
  const value_id x = b.input("x", {dim(1), dim::symbol("seq"), 12});
  const value_id merged = b.op("Add", {b.op("MatMul", {x, b.constant("w", random_tensor({12, 208}, 1))}),
                                       b.constant("b", random_tensor({208}, 2))});
  std::vector<value_id> ends =
      b.call("Split", {merged, b.integers({64, 80, 64})}, {"q", "k", "v"}, attrs_of({{"axis", int64_t{-1}}}));
  const value_id gemm =
      b.op("Reshape", {b.op("Gemm",
                            {b.op("Reshape", {x, b.integers({-1, 12})}), b.constant("w2", random_tensor({192, 12}, 3)),
                             b.constant("b2", random_tensor({192}, 4))},
                            attrs_of({{"transB", int64_t{1}}})),
                       b.integers({1, -1, 3, 64})});
  for (const int64_t i : {2, 0, -2})
    ends.push_back(b.op("Gather", {gemm, b.constant("i" + std::to_string(i), tensor::scalar(i))},
                        attrs_of({{"axis", int64_t{2}}})));
  for (const value_id end : ends)
    b.output(b.op("Tanh", {end}));
  const graph split = check_fusion(b.g, {random_tensor({1, 5, 12}, 5)});
  CHECK(count_nodes(split, "troupe.MatMul") == 6);
  CHECK(count_nodes(split, "Split") + count_nodes(split, "Gather") == 0);
}

TEST_CASE("a product stays whole if more than its parts is read, the parts are small, or its rows many", "[rewrite]") {
  enum class reason { read, small, rows };
  for (const reason why : {reason::read, reason::small, reason::rows}) {
    graph_builder b;
    const int64_t rows = why == reason::rows ? 16 : 3;
    const value_id x = b.input("x", {rows, 12}), w = b.constant("w", random_tensor({12, 128}, 1));
    const value_id y = b.op("MatMul", {x, w});
    const auto sizes = why == reason::small ? std::vector<int64_t>{100, 28} : std::vector<int64_t>{64, 64};
    for (const value_id end : b.call("Split", {y, b.integers(sizes)}, {"p", "q"}, attrs_of({{"axis", int64_t{1}}})))
      b.output(b.op("Tanh", {end}));
    if (why == reason::read)
      b.output(b.op("Tanh", {y}));
    CHECK(count_nodes(check_fusion(b.g, {random_tensor({rows, 12}, 2)}), "Split") == 1);
  }
}

TEST_CASE("RMS norm and layer norm written out become one node", "[rewrite][A4]") {
  graph_builder b;
  const value_id x = b.input("x", {2, 3, 37});
  const attributes last = attrs_of({{"axes", std::vector<int64_t>{-1}}});
  const value_id square = b.op("Pow", {x, b.scalar(2)});
  const value_id root = b.op("Sqrt", {b.op("Add", {b.op("ReduceMean", {square}, last), b.scalar(1e-6f)})});
  const value_id unit = b.op("Mul", {x, b.op("Div", {b.scalar(1), root})});
  b.output(b.op("Mul", {b.constant("w", random_tensor({37}, 1)), unit}));

  const value_id centred = b.op("Sub", {x, b.op("ReduceMean", {x}, last)});
  const value_id spread =
      b.op("Sqrt", {b.op("Add", {b.op("ReduceMean", {b.op("Pow", {centred, b.scalar(2)})}, last), b.scalar(1e-5f)})});
  const value_id scaled = b.op("Mul", {b.op("Div", {centred, spread}), b.constant("g", random_tensor({37}, 2))});
  b.output(b.op("Add", {scaled, b.constant("h", random_tensor({37}, 3))}));
  const graph fused = check_fusion(b.g, {random_tensor({2, 3, 37}, 4)});
  CHECK(fused.nodes.size() == 2);
  CHECK(count_nodes(fused, "RMSNormalization") == 1);
  CHECK(count_nodes(fused, "LayerNormalization") == 1);
}

TEST_CASE("GELU and SiLU written out become one node", "[rewrite][A4]") {
  graph_builder b;
  const value_id x = b.input("x", {3, 67});
  const value_id erf = b.op("Add", {b.op("Erf", {b.op("Div", {x, b.scalar(1.41421356f)})}), b.scalar(1)});
  b.output(b.op("Mul", {b.op("Mul", {x, erf}), b.scalar(0.5f)}));
  const value_id cube = b.op("Mul", {b.op("Pow", {x, b.scalar(3)}), b.scalar(0.044715f)});
  const value_id tanh = b.op("Tanh", {b.op("Mul", {b.op("Add", {x, cube}), b.scalar(0.7978845608f)})});
  b.output(b.op("Mul", {b.op("Mul", {x, b.scalar(0.5f)}), b.op("Add", {tanh, b.scalar(1)})}));
  b.output(b.op("Mul", {x, b.op("Sigmoid", {x})}));
  const graph fused = check_fusion(b.g, {random_tensor({3, 67}, 1)});
  CHECK(fused.nodes.size() == 3);
  CHECK(count_nodes(fused, "Gelu") == 2);
  CHECK(count_nodes(fused, "Swish") == 1);
}

TEST_CASE("what only looks like a norm or an activation stays", "[rewrite]") {
  SECTION("a number that is nearly the one of GELU") {
    graph_builder b;
    const value_id x = b.input("x", {2, 8});
    const value_id gate = b.op("Add", {b.op("Erf", {b.op("Mul", {x, b.scalar(0.7075f)})}), b.scalar(1)});
    b.output(b.op("Mul", {b.op("Mul", {x, b.scalar(0.5f)}), gate}));
    CHECK(count_nodes(check_fusion(b.g, {random_tensor({2, 8}, 1)}, 1e-6), "Gelu") == 0);
  }
  SECTION("hard swish of integers") {
    graph_builder b(16);
    const auto number = [&](int32_t i) { return b.constant("i" + std::to_string(i), tensor::scalar(i)); };
    const value_id x = b.input("x", {18}, dtype::int32);
    const value_id gate = b.op("Clip", {b.op("Add", {x, number(3)}), number(0), number(6)});
    b.output(b.op("Div", {b.op("Mul", {x, gate}), number(6)}));
    CHECK(count_nodes(rewrite(b.g, {}), "HardSwish") == 0);
  }
  SECTION("RMS norm of integers") {
    graph_builder b;
    const value_id x = b.input("x", {3, 8}, dtype::int32);
    const auto number = [&](const char* name, int32_t i) { return b.constant(name, tensor::scalar(i)); };
    const value_id mean = b.op("ReduceMean", {b.op("Mul", {x, x})}, attrs_of({{"axes", std::vector<int64_t>{-1}}}));
    const value_id sum = b.op("Add", {mean, number("epsilon", 1)});
    const value_id root = b.op("Cast", {b.op("Sqrt", {b.op("Cast", {sum}, attrs_of({{"to", int64_t{1}}}))})},
                               attrs_of({{"to", int64_t{6}}}));
    b.output(b.op("Mul", {b.op("Div", {x, root}), b.constant("w", tensor(dtype::int32, {8}))}));
    CHECK(count_nodes(rewrite(b.g, {}), "RMSNormalization") == 0);
  }
  SECTION("groups that do not divide the channels") {
    graph_builder b;
    const value_id x = b.input("x", {2, 3, 4, 4});
    const value_id unit = b.op("InstanceNormalization",
                               {b.op("Reshape", {x, b.integers({0, 2, -1})}), b.constant("one", floats({2}, {1, 1})),
                                b.constant("zero", floats({2}, {0, 0}))});
    b.output(b.op("Reshape", {unit, b.integers({2, 3, 4, 4})}));
    CHECK(count_nodes(check_fusion(b.g, {random_tensor({2, 3, 4, 4}, 1)}), "GroupNormalization") == 0);
  }
}

TEST_CASE("elementwise chains become one node, diamonds included", "[rewrite][A4]") {
  graph_builder b;
  const value_id x = b.input("x", {3, dim::symbol("n"), 7}), y = b.input("y", {dim::symbol("n"), 1});
  const value_id a = b.op("Mul", {x, b.scalar(1.5f)});
  const value_id c = b.op("Sub", {b.op("Exp", {b.op("Neg", {a})}), y});
  b.output(b.op("Max", {b.op("Add", {a, c}), b.constant("row", random_tensor({7}, 1))}));
  const graph fused = check_fusion(b.g, {random_tensor({3, 5, 7}, 2), random_tensor({5, 1}, 3)});
  CHECK(fused.nodes.size() == 1);
  CHECK(count_nodes(fused, "troupe.Elementwise") == 1);
}

TEST_CASE("long elementwise chains are cut, intermediate outputs kept", "[rewrite]") {
  graph_builder b;
  value_id v = b.input("x", {5});
  for (int i = 0; i < 40; ++i) {
    v = b.op("Add", {v, b.scalar(static_cast<float>(i) * 0.25f)});
    if (i == 10)
      b.output(v);
  }
  b.output(v);
  const graph fused = check_fusion(b.g, {random_tensor({5}, 1)});
  CHECK(fused.nodes.size() == 3); // 11 to the first output, then 13 and 16
}
