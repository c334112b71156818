// The row proof, family by family of operators: where rows go, and the twin of each call that mixes them.
#include "loader/onnx_loader.hpp"
#include "rewrite/rewrite.hpp"
#include "strategy/call_model.hpp"
#include "support/places.hpp"
#include "support/thrown.hpp"

#include <filesystem>

using namespace troupe;
using namespace troupe::test;
using m = call_model;

TEST_CASE("Elementwise calls keep rows apart if operands align", "[strategy][C1]") {
  CHECK(axis_after([](m& b) { return b.op("Add", {b.x({batch, 4}), b.x({3, batch, 1})}); }) == 1);
  CHECK(axis_after([](m& b) {
          return b.op("Where", {b.x({batch, 1}, dtype::boolean), b.weights({4}), b.x({batch, 4})});
        }) == 0);
  CHECK(axis_after([](m& b) {
          return b.many("Elementwise", {b.x({batch, 4}), b.weights({4})}, 1,
                        attrs_of({{"steps", std::vector<int64_t>{0, 0, 1, 0}}}), "troupe");
        }) == 0);
  // A vector of rows against the last axis, and weights where the rows are.
  CHECK_THAT(refusal_of([](m& b) {
               return b.op("Add", {b.x({batch, 4}), b.x({batch})});
             }),
             Catch::Contains("each row with all others"));
  CHECK_THAT(refusal_of([](m& b) {
               return b.op("Mul", {b.x({batch}), b.weights({3})});
             }),
             Catch::Contains("a part of operand 1"));
  CHECK_THAT(refusal_of([](m& b) {
               return b.op("Add", {b.x({batch, 1}), b.x({1, batch})});
             }),
             Catch::Contains("each row with all others"));
}

TEST_CASE("Vectors that are normalised must not lie across rows", "[strategy][C1]") {
  for (const char* op : {"Softmax", "LogSoftmax", "Hardmax", "LpNormalization"}) {
    CHECK(axis_after([&](m& b) { return b.op(op, {b.x({batch, 4})}, at(-1)); }) == 0);
    CHECK_THAT(refusal_of([&](m& b) { return b.op(op, {b.x({batch, 4})}, at(0)); }), Catch::Contains(op));
  }
  // Before opset 13 all axes from `axis` on are one vector.
  CHECK(axis_after([](m& b) { return b.op("Softmax", {b.x({batch, 4})}, at(1)); }, 11) == 0);
  CHECK(axis_after([](m& b) { return b.op("Softmax", {b.x({4, batch})}, at(0)); }) == 1);
  CHECK_THAT(refusal_of(
                 [](m& b) {
                   return b.op("Softmax", {b.x({4, batch})}, at(0));
                 },
                 11),
             Catch::Contains("normalises over axis 1"));
}

TEST_CASE("Reductions and orders must not lie across rows", "[strategy][C1]") {
  CHECK(axis_after([](m& b) {
          return b.op("LayerNormalization", {b.x({batch, 4}), b.weights({4}), b.weights({4})});
        }) == 0);
  CHECK_THAT(refusal_of([](m& b) {
               return b.op("LayerNormalization", {b.x({4, batch}), b.weights({1})});
             }),
             Catch::Contains("LayerNormalization"));
  const auto over = [](std::vector<int64_t> axes, int64_t keep) {
    return attrs_of({{"axes", std::move(axes)}, {"keepdims", keep}});
  };
  CHECK(axis_after([&](m& b) { return b.op("ReduceMax", {b.x({4, batch, 5})}, over({0, -1}, 0)); }) == 0);
  CHECK(axis_after([&](m& b) { return b.op("ReduceMax", {b.x({4, batch, 5})}, over({0}, 1)); }) == 1);
  CHECK_THAT(refusal_of([&](m& b) {
               return b.op("ReduceMax", {b.x({4, batch, 5})}, over({-2}, 1));
             }),
             Catch::Contains("takes the maximum over axis 1"));
  CHECK_THAT(refusal_of([](m& b) {
               return b.op("ReduceSum", {b.x({batch, 5})});
             }),
             Catch::Contains("sums over axis 0"));
  CHECK(axis_after([](m& b) { return b.op("ReduceSum", {b.x({4, batch}), b.integers({0})}); }) == 1);
  CHECK(axis_after([](m& b) { return b.op("ArgMax", {b.x({4, batch})}, attrs_of({{"keepdims", int64_t{0}}})); }) == 0);
  CHECK_THAT(refusal_of([](m& b) { return b.op("ArgMin", {b.x({batch, 4})}); }), Catch::Contains("ArgMin"));
  CHECK(proved([](m& b) {
          return b.many("TopK", {b.x({batch, 4}), b.integers({2})}, 2);
        }).outputs == std::vector<std::optional<size_t>>{0, 0});
  CHECK_THAT(refusal_of([](m& b) {
               return b.many("TopK", {b.x({batch, 4}), b.integers({2})}, 2, at(0));
             }),
             Catch::Contains("sorts axis 0"));
  CHECK(axis_after([](m& b) { return b.op("CumSum", {b.x({batch, 4}), b.integer(1)}); }) == 0);
  CHECK_THAT(refusal_of([](m& b) {
               return b.op("CumSum", {b.x({batch, 4}), b.integer(-2)});
             }),
             Catch::Contains("accumulates along axis 0"));
  CHECK_THAT(refusal_of([](m& b) {
               return b.op("MeanVarianceNormalization", {b.x({batch, 2, 3, 3})});
             }),
             Catch::Contains("normalises over axis 0"));
}

TEST_CASE("Products must not sum over rows or cross them", "[strategy][C1]") {
  const auto flag = [](const char* name) { return attrs_of({{name, int64_t{1}}}); };
  CHECK(axis_after([](m& b) { return b.op("MatMul", {b.x({2, batch, 4}), b.weights({4, 5})}); }) == 1);
  CHECK(axis_after([](m& b) { return b.op("MatMul", {b.weights({3, 4}), b.x({4, batch})}); }) == 1);
  CHECK(axis_after([](m& b) { return b.op("MatMul", {b.x({batch, 4}), b.weights({4})}); }) == 0);
  CHECK(axis_after([](m& b) { return b.op("MatMul", {b.x({batch, 2, 4}), b.x({batch, 4, 3})}); }) == 0);
  CHECK_THAT(refusal_of([](m& b) {
               return b.op("MatMul", {b.x({3, batch}), b.weights({7, 2})});
             }),
             Catch::Contains("sums over axis 1"));
  CHECK_THAT(refusal_of([](m& b) {
               return b.op("MatMul", {b.x({batch, 4}), b.x({4, batch})});
             }),
             Catch::Contains("each row with all others"));
  CHECK_THAT(refusal_of([](m& b) {
               return b.op("MatMul", {b.x({batch, 2, 4}), b.weights({3, 4, 2})});
             }),
             Catch::Contains("a part of operand 1"));
  CHECK(axis_after([&](m& b) { return b.op("Gemm", {b.x({4, batch}), b.weights({4, 2})}, flag("transA")); }) == 0);
  CHECK_THAT(refusal_of([&](m& b) {
               return b.op("Gemm", {b.x({batch, 4}), b.weights({7, 2})}, flag("transA"));
             }),
             Catch::Contains("sums over axis 0"));
  CHECK_THAT(refusal_of([](m& b) {
               return b.op("Gemm", {b.x({batch, 4}), b.weights({4, 2}), b.weights({7, 2})});
             }),
             Catch::Contains("a part of operand 2"));
}

TEST_CASE("Fused and integer products follow the same rule", "[strategy][C1]") {
  const auto fused = [](m& b, value_id residual, const char* name) {
    return b.many("MatMul", {b.x({batch, 4}), b.weights({4, 4}), no_value, residual}, 1, attrs_of({{name, int64_t{1}}}),
                  "troupe");
  };
  CHECK(axis_after([&](m& b) { return fused(b, b.x({batch, 4}), "transB"); }) == 0);
  CHECK_THAT(refusal_of([&](m& b) { return fused(b, no_value, "transA"); }), Catch::Contains("troupe.MatMul"));
  CHECK(axis_after([](m& b) {
          return b.op("MatMulInteger", {b.x({batch, 4}, dtype::uint8), b.bytes({4, 2}), b.bytes({}), b.bytes({2})});
        }) == 0);
  CHECK_THAT(refusal_of([](m& b) {
               return b.op("MatMulInteger", {b.x({batch, 4}, dtype::uint8), b.bytes({4, 2}), b.bytes({7})});
             }),
             Catch::Contains("a part of operand 2"));
}

TEST_CASE("Projections keep rows apart unless they are summed over; a residual has rows of its own", "[strategy][C1]") {
  const auto projections = [](m& b, symbolic_shape x, value_id scale, value_id residual) {
    return b.many("Projections",
                  {b.x(std::move(x)), scale, no_value, b.weights({4, 5}), no_value, no_value, no_value, residual}, 1,
                  attrs_of({{"products", int64_t{1}}, {"norm", std::string("RMSNormalization")}}), "troupe");
  };
  CHECK(axis_after([&](m& b) { return projections(b, {batch, 3, 4}, b.weights({4}), b.x({batch, 3, 5})); }) == 0);
  CHECK(axis_after([&](m& b) { return projections(b, {3, batch, 4}, b.weights({4}), no_value); }) == 1);
  CHECK_THAT(refusal_of([&](m& b) {
               return projections(b, {batch, 3, 4}, b.weights({4}), b.x({7, 3, 5}));
             }),
             Catch::Contains("troupe.Projections"));
  CHECK_THAT(refusal_of([&](m& b) {
               return projections(b, {batch, 4}, b.x({batch}), no_value);
             }),
             Catch::Contains("troupe.Projections"));
}

TEST_CASE("Projections normalise each row by a scale that all share", "[strategy][C1]") {
  const auto normed = [](m& b, value_id scale) {
    return b.many("Projections",
                  {b.x({batch, 3, 4}), no_value, no_value, b.weights({4, 5}), no_value, no_value, no_value,
                   b.x({batch, 3, 5}), scale},
                  2, attrs_of({{"products", int64_t{1}}, {"last_norm", std::string("RMSNormalization")}}), "troupe");
  };
  CHECK(axis_after([&](m& b) { return normed(b, b.weights({5})); }) == 0);
  CHECK_THAT(refusal_of([&](m& b) { return normed(b, b.x({batch, 3, 5})); }), Catch::Contains("troupe.Projections"));
}

TEST_CASE("Projections rotate a batch element by angles of its own, or of all", "[strategy][C1]") {
  const auto rotated = [](m& b, symbolic_shape x, const char* op, std::vector<value_id> angles) {
    std::vector<value_id> inputs{b.x(std::move(x)), no_value, no_value, b.weights({4, 6})};
    inputs.resize(8, no_value);
    inputs.insert(inputs.end(), angles.begin(), angles.end());
    return b.many(
        "Projections", inputs, 1,
        attrs_of({{"products", int64_t{1}}, {"rotary", std::string(op)}, {"rotary_heads", std::vector<int64_t>{3}}}),
        "troupe");
  };
  CHECK(axis_after([&](m& b) {
          return rotated(b, {batch, 3, 4}, "Rotary", {b.x({batch, 3, 2}), b.weights({1, 3, 2})});
        }) == 0);
  CHECK(axis_after([&](m& b) {
          return rotated(b, {batch, 3, 4}, "RotaryEmbedding",
                         {b.weights({9, 1}), b.weights({9, 1}), b.x({batch, 3}, dtype::int64)});
        }) == 0);
  CHECK_THAT(refusal_of([&](m& b) {
               return rotated(b, {3, batch, 4}, "Rotary", {b.weights({1, 3, 2}), b.weights({1, 3, 2})});
             }),
             Catch::Contains("gives each row a part of operand 8")); // positions have angles of their own
  CHECK_THAT(refusal_of([&](m& b) {
               return rotated(b, {batch, 3, 4}, "RotaryEmbedding",
                              {b.x({batch, 1}), b.weights({9, 1}), b.x({batch, 3}, dtype::int64)});
             }),
             Catch::Contains("troupe.Projections"));
}

TEST_CASE("General products must not sum over rows or cross them", "[strategy][C1]") {
  const auto einsum = [](const char* text) { return attrs_of({{"equation", std::string(text)}}); };
  CHECK(axis_after([&](m& b) { return b.op("Einsum", {b.x({batch, 4}), b.x({batch, 4})}, einsum("bk,bk->b")); }) == 0);
  CHECK_THAT(refusal_of([&](m& b) {
               return b.op("Einsum", {b.x({batch, 4}), b.x({batch, 4})}, einsum("bk,ck->bc"));
             }),
             Catch::Contains("each row with all others"));
  CHECK_THAT(refusal_of([&](m& b) {
               return b.op("Einsum", {b.x({batch, 4})}, einsum("bk->k"));
             }),
             Catch::Contains("sums over axis 0"));
}

TEST_CASE("Append takes a batch element of the cache and of the new rows as a row", "[strategy][C1]") {
  const auto append = [](m& b, const symbolic_shape& fresh) {
    return b.many("Append", {b.x({batch, 2, 3, 4}), b.x(fresh)}, 1, {}, "troupe");
  };
  CHECK(axis_after([&](m& b) { return append(b, {batch, 2, 5, 4}); }) == 0);
  CHECK_THAT(refusal_of([&](m& b) { return append(b, {7, 2, 5, 4}); }), Catch::Contains("troupe.Append"));
}

TEST_CASE("Attention takes a batch element as a row, with its own mask or one for all", "[strategy][C1]") {
  const auto attention = [](m& b, symbolic_shape key, value_id mask) {
    return b.many("Attention", {b.x({batch, 2, 3, 4}), b.x(key), b.x({batch, 2, 5, 4}), mask}, 1, {}, "troupe");
  };
  CHECK(axis_after([&](m& b) { return attention(b, {batch, 2, 5, 4}, b.x({batch, 1, 3, 5})); }) == 0);
  CHECK(axis_after([&](m& b) { return attention(b, {batch, 2, 5, 4}, b.weights({3, 5})); }) == 0);
  CHECK_THAT(refusal_of([&](m& b) {
               return attention(b, {batch, 2, 5, 4}, b.weights({7, 1, 3, 5}));
             }),
             Catch::Contains("troupe.Attention"));
  CHECK_THAT(refusal_of([&](m& b) {
               return attention(b, {7, 2, 5, 4}, no_value);
             }),
             Catch::Contains("a part of operand 1"));
  const auto rotary = [](m& b, symbolic_shape angle) {
    return b.many("Rotary", {b.x({batch, 2, 3, 4}), b.x(angle), b.x(angle)}, 1, {}, "troupe");
  };
  CHECK(axis_after([&](m& b) { return rotary(b, {batch, 3, 4}); }) == 0);
  CHECK(axis_after([&](m& b) { return rotary(b, {1, 3, 4}); }) == 0);
  CHECK_THAT(refusal_of([&](m& b) { return rotary(b, {7, 3, 4}); }), Catch::Contains("troupe.Rotary"));
}

TEST_CASE("Images and sequences are rows; figures over the whole batch are not", "[strategy][C1]") {
  const auto kernel = attrs_of({{"kernel_shape", std::vector<int64_t>{2}}});
  CHECK(axis_after([](m& b) { return b.op("Conv", {b.x({batch, 3, 8}), b.weights({5, 3, 2}), b.weights({5})}); }) == 0);
  CHECK_THAT(refusal_of([](m& b) {
               return b.op("Conv", {b.x({1, 3, batch}), b.weights({5, 3, 1})});
             }),
             Catch::Contains("takes windows along axis 2"));
  CHECK(axis_after([](m& b) {
          return b.many("Conv", {b.x({batch, 3, 8}), b.weights({3, 3, 1}), no_value, b.x({batch, 3, 8})}, 1, {},
                        "troupe");
        }) == 0);
  CHECK(axis_after([&](m& b) { return b.op("MaxPool", {b.x({batch, 3, 8})}, kernel); }) == 0);
  CHECK_THAT(refusal_of([&](m& b) {
               return b.many("MaxPool", {b.x({batch, 3, 8})}, 2, kernel);
             }),
             Catch::Contains("count through the whole batch"));
  const auto norm = [](m& b, attributes attrs) {
    return b.op("BatchNormalization", {b.x({batch, 3}), b.weights({3}), b.weights({3}), b.weights({3}), b.weights({3})},
                attrs);
  };
  CHECK(axis_after([&](m& b) { return norm(b, {}); }) == 0);
  CHECK_THAT(refusal_of([&](m& b) {
               return norm(b, attrs_of({{"training_mode", int64_t{1}}}));
             }),
             Catch::Contains("the whole batch"));
  const auto resize = [](m& b, const char* mode, std::vector<float> scales) {
    const value_id s = b.constant("scales", tensor::of<float>({3}, scales));
    return b.op("Resize", {b.x({batch, 3, 8}), no_value, s},
                attrs_of({{"coordinate_transformation_mode", std::string(mode)}}));
  };
  CHECK(axis_after([&](m& b) { return resize(b, "half_pixel", {1, 1, 2}); }) == 0);
  CHECK_THAT(refusal_of([&](m& b) { return resize(b, "half_pixel", {2, 1, 2}); }), Catch::Contains("Resize"));
  CHECK_THAT(refusal_of([&](m& b) { return resize(b, "tf_half_pixel_for_nn", {1, 1, 2}); }), Catch::Contains("move"));
  const auto lstm = [](m& b, symbolic_shape x, value_id state) {
    return b.many("LSTM", {b.x(x), b.weights({1, 8, 4}), b.weights({1, 8, 2}), no_value, no_value, state}, 3,
                  attrs_of({{"hidden_size", int64_t{2}}}));
  };
  CHECK(proved([&](m& b) {
          return lstm(b, {5, batch, 4}, b.x({1, batch, 2}));
        }).outputs == std::vector<std::optional<size_t>>{2, 1, 1});
  CHECK_THAT(refusal_of([&](m& b) { return lstm(b, {batch, 7, 4}, no_value); }), Catch::Contains("LSTM"));
}

TEST_CASE("Losses, determinants and dropped elements go by rows if they do not look across them", "[strategy][C1]") {
  const auto loss = [](m& b, symbolic_shape x, symbolic_shape target, const char* reduction) {
    return b.op("NegativeLogLikelihoodLoss", {b.x(std::move(x)), b.x(std::move(target), dtype::int64)},
                attrs_of({{"reduction", std::string(reduction)}}));
  };
  CHECK(axis_after([&](m& b) { return loss(b, {batch, 5, 3}, {batch, 3}, "none"); }) == 0);
  CHECK(axis_after([&](m& b) { return loss(b, {4, 5, batch}, {4, batch}, "none"); }) == 1);
  CHECK_THAT(refusal_of([&](m& b) {
               return loss(b, {batch, 5}, {batch}, "mean");
             }),
             Catch::Contains("combines losses along axis 0"));
  CHECK_THAT(refusal_of([&](m& b) {
               return loss(b, {4, batch}, {4}, "none");
             }),
             Catch::Contains("combines losses along axis 1"));
  CHECK_THAT(refusal_of([](m& b) {
               const value_id target = b.constant("t", tensor::of<int64_t>({3}, std::vector<int64_t>{0, 1, 2}));
               return b.op("NegativeLogLikelihoodLoss", {b.x({batch, 5}), target},
                           attrs_of({{"reduction", std::string("none")}}));
             }),
             Catch::Contains("operand 1"));
  CHECK(axis_after([](m& b) { return b.op("Det", {b.x({3, batch, 2, 2})}); }) == 1);
  CHECK_THAT(refusal_of([](m& b) {
               return b.op("Det", {b.x({3, batch, batch})});
             }),
             Catch::Contains("exactly one axis"));
  CHECK_THAT(refusal_of([](m& b) {
               return b.op("Det", {b.x({3, batch, 2})});
             }),
             Catch::Contains("determinants over axis 1"));
  CHECK(axis_after([](m& b) { return b.op("BitCast", {b.x({3, batch})}, attrs_of({{"to", int64_t{6}}})); }, 26) == 1);
  const auto dropout = [](m& b, float ratio) {
    const value_id train = b.constant("train", tensor::scalar(true));
    return b.op("Dropout", {b.x({batch, 4}), b.scalar(ratio), train}, attrs_of({{"seed", int64_t{3}}}));
  };
  CHECK(axis_after([&](m& b) { return dropout(b, 0); }) == 0);
  CHECK_THAT(refusal_of([&](m& b) { return dropout(b, 0.5f); }), Catch::Contains("drops elements by their position"));
}

TEST_CASE("Blocks and linear attention have a batch element as a row", "[strategy][C1]") {
  CHECK(axis_after(
            [](m& b) {
              return b.op("Col2Im", {b.x({batch, 4, 2}), b.integers({3}), b.integers({2})});
            },
            18) == 0);
  CHECK(axis_after([](m& b) { return b.op("GridSample", {b.x({batch, 2, 5, 6}), b.x({batch, 3, 4, 2})}); }, 20) == 0);
  CHECK(axis_after(
            [](m& b) {
              return b.op("DeformConv", {b.x({batch, 2, 5, 5}), b.weights({3, 2, 2, 2}), b.x({batch, 8, 4, 4})});
            },
            19) == 0);
  CHECK(axis_after(
            [](m& b) {
              return b.op("STFT", {b.x({batch, 16, 1}), b.integer(3), no_value, b.integer(8)});
            },
            17) == 0);
  CHECK(axis_after([](m& b) { return b.op("DFT", {b.x({batch, 6, 2})}); }, 20) == 0);
  CHECK_THAT(refusal_of(
                 [](m& b) {
                   return b.op("DFT", {b.x({6, batch, 2})}, at(1));
                 },
                 17),
             Catch::Contains("transforms"));
  const auto attention = [](m& b, symbolic_shape state) {
    const value_id x = b.x({batch, 2, 3});
    return b.many(
        "LinearAttention", {x, x, x, b.x(std::move(state))}, 2,
        attrs_of({{"update_rule", std::string("linear")}, {"q_num_heads", int64_t{1}}, {"kv_num_heads", int64_t{1}}}));
  };
  CHECK(proved(
            [&](m& b) {
              return attention(b, {batch, 1, 3, 3});
            },
            27)
            .outputs == std::vector<std::optional<size_t>>{0, 0});
  CHECK_THAT(refusal_of([&](m& b) { return attention(b, {1, 1, 3, 3}); }, 27), Catch::Contains("operand 3"));
}

TEST_CASE("Inputs decide where rows are", "[strategy][C1]") {
  const auto relu_of = [](symbolic_shape dims) { return [dims](m& b) { return b.op("Relu", {b.x(dims)}); }; };
  const auto rows = proved([](m& b) {
    const value_id table = b.x({3, 4}), x = b.x({2, batch, 4});
    return b.op("MatMul", {x, b.op("Transpose", {table})});
  });
  CHECK(rows.symbol == "batch");
  CHECK(rows.inputs == std::vector<std::optional<size_t>>{std::nullopt, 1});
  CHECK_THAT(refusal_of(relu_of({2, 3})), Catch::Contains("every dim of its inputs is fixed"));
  CHECK_THAT(refusal_of([](m& b) {
               return b.op("MatMul", {b.x({batch, 4}), b.x({4, batch * dim(2)})});
             }),
             Catch::Contains("exactly one axis"));
  CHECK_THAT(refusal_of(relu_of({batch, batch})), Catch::Contains("exactly one axis"));
}

TEST_CASE("Sequences have no rows that could be cut", "[strategy][C1][sequence]") {
  graph_builder b;
  b.output(b.op("Identity", {b.input("s", {dim::symbol("n")}, sequence_of(dtype::float32))}));
  CHECK_THAT(std::string(thrown_by([&] { prove_rows(rewrite(b.g, {})); }).what()),
             Catch::Contains("the rows of 's' cannot be told apart: it is sequence(float32)"));
}

TEST_CASE("Rows of real models are independent", "[strategy][C1]") {
  const auto data = std::filesystem::path(test_data());
  for (const auto& file :
       {data / "small_cnn.onnx", data / "small_transformer.onnx", data / "../../examples/digits/digits.onnx"}) {
    INFO(file);
    const batch_rows rows = prove_rows(rewrite(load_model(file), {}));
    CHECK(rows.inputs == std::vector<std::optional<size_t>>{0});
    CHECK(rows.outputs == std::vector<std::optional<size_t>>{0});
  }
  CHECK_THAT(thrown_by([&] { prove_rows(rewrite(load_model(data / "decoder.onnx"), {})); }).what(),
             Catch::Contains("Mul 'masked'"));
}
