#include "ops/movement_calls.hpp"
#include "support/catch.hpp"
#include "support/graph_builder.hpp"

#include <numeric>

using namespace troupe;
using namespace troupe::testing;
using test::graph_builder;

namespace {

tensor iota(shape dims) {
  std::vector<float> values(static_cast<size_t>(volume(dims)));
  std::iota(values.begin(), values.end(), 0.f);
  return tensor::of<float>(std::move(dims), values);
}

std::string dims(const graph_builder& b, value_id v) {
  return to_string(*b.g.values[v].dims);
}

std::string known(const graph_builder& b, value_id v) {
  return b.g.values[v].known ? to_string(*b.g.values[v].known) : "unknown";
}

const dim batch = dim::symbol("batch"), seq = dim::symbol("seq"), past = dim::symbol("past");

} // namespace

TEST_CASE("Reshape's -1 is the quotient that is left, also of symbolic dims", "[ops]") {
  graph_builder b(19);
  const auto x = b.input({batch, seq + past, 768});
  CHECK(dims(b, b.inferred("Reshape", {x, b.integers({0, 0, 12, -1})})) ==
        to_string(symbolic_shape{batch, seq + past, 12, 64}));
  CHECK(dims(b, b.inferred("Reshape", {x, b.integers({-1, 768})})) ==
        to_string(symbolic_shape{batch * (seq + past), 768}));
  CHECK_THROWS_AS(b.inferred("Reshape", {x, b.integers({-1, -1})}), error);
  CHECK_THROWS_AS(b.inferred("Reshape", {b.input({2, 3}), b.integers({4})}), error);
  CHECK_THROWS_AS(b.inferred("Reshape", {b.input({2, 3}), b.integers({-1, 4})}), error);
}

TEST_CASE("Exporters' shape arithmetic stays symbolic", "[ops]") {
  graph_builder b(19);
  const auto x = b.input({batch, seq, 64});
  const auto s = b.inferred("Shape", {x});
  CHECK(known(b, s) == "[batch, seq, 64]");
  const auto first = b.inferred("Unsqueeze", {b.inferred("Gather", {s, b.integer(0)}), b.integers({0})});
  const auto rest = b.inferred("Slice", {s, b.integers({-1}), b.integers({INT64_MAX})});
  const auto target = b.inferred("Concat", {first, b.integers({-1, 8}), rest}, with("axis", int64_t{0}));
  CHECK(known(b, target) == "[batch, -1, 8, 64]");
  const auto tokens = b.inferred("Squeeze", {b.inferred("Gather", {s, b.integers({1})}), b.integers({0})});
  const auto range = b.inferred("Range", {b.integer(0), tokens, b.integer(1)});
  CHECK(dims(b, range) == "[seq]");
  CHECK(known(b, range) == "unknown");
  CHECK(known(b, b.inferred("Range", {b.integer(1), b.integer(7), b.integer(3)})) == "[1, 4]");
  CHECK(known(b, b.inferred("ConstantOfShape", {b.integers({2})}, with("value", ints({1}, {5})))) == "[5, 5]");
  CHECK(dims(b, b.inferred("Expand", {b.input({1, seq, 1}),
                                      b.inferred("Concat", {first, b.integers({1, 4})}, with("axis", int64_t{0}))})) ==
        "[batch, seq, 4]");
}

TEST_CASE("Squeeze takes an empty list of axes as none", "[ops]") {
  graph_builder b(19);
  const auto x = b.input({1, 3, 1, 2});
  CHECK(dims(b, b.inferred("Squeeze", {x, b.integers({})})) == "[3, 2]");
  CHECK(dims(b, b.inferred("Squeeze", {x})) == "[3, 2]");
  CHECK(dims(b, b.inferred("Squeeze", {x, b.integers({2})})) == "[1, 3, 2]");
}

TEST_CASE("Slice of symbolic dims follows NumPy", "[ops]") {
  graph_builder b(19);
  const auto x = b.input({batch, past + seq});
  const auto slice = [&](int64_t from, int64_t to, int64_t step) {
    return *b.g.values[b.inferred("Slice",
                                  {x, b.integers({from}), b.integers({to}), b.integers({1}), b.integers({step})})]
                .dims;
  };
  CHECK(slice(0, INT64_MAX, 1)[1] == past + seq);
  CHECK(slice(-1, INT32_MAX, 1)[1] == dim(1));
  CHECK(slice(1, INT64_MAX, 1)[1] == past + seq - 1);
  CHECK(slice(-1, INT64_MIN, -1)[1] == past + seq);
  CHECK(slice(0, 3, 1)[1].evaluate({{"past", 1}, {"seq", 1}}) == 2);
  CHECK(slice(0, 3, 1)[1].evaluate({{"past", 4}, {"seq", 1}}) == 3);
  const auto length = b.inferred("Shape", {b.input({seq})});
  const auto head = b.inferred("Slice", {x, b.integers({0}), length, b.integers({1})});
  CHECK((*b.g.values[head].dims)[1] == seq);
}

TEST_CASE("Slice walks forwards and backwards and clamps", "[ops]") {
  const tensor x = iota({6});
  const auto slice = [&](int64_t from, int64_t to, int64_t step) {
    return floats(call("Slice", {x, ints({1}, {from}), ints({1}, {to}), ints({1}, {0}), ints({1}, {step})}).at(0));
  };
  CHECK(slice(-2, INT64_MAX, 1) == std::vector<float>{4, 5});
  CHECK(slice(INT64_MAX, INT64_MIN, -2) == std::vector<float>{5, 3, 1});
  CHECK(slice(3, -7, -1) == std::vector<float>{3, 2, 1, 0});
  CHECK(slice(1, 5, INT64_MAX) == std::vector<float>{1});
  CHECK(slice(4, 0, INT64_MIN) == std::vector<float>{4});
  CHECK(slice(4, 2, 1).empty());
  // Before the first element, backwards: from the first one, as ONNX says, not nowhere as in NumPy.
  CHECK(slice(-100, INT64_MIN, -1) == std::vector<float>{0});
  CHECK(slice(-7, -100, -2) == std::vector<float>{0});
  CHECK(slice(-100, 3, -1).empty());
  CHECK(call("Slice", {iota({0}), ints({1}, {-1}), ints({1}, {-100}), ints({1}, {0}), ints({1}, {-1})}).at(0).size() ==
        0);
}

TEST_CASE("Transpose of every permutation agrees with index arithmetic", "[ops]") {
  const shape dims{3, 37, 1, 70};
  const tensor x = iota(dims);
  const shape strides = strides_of(dims);
  std::vector<int64_t> perm{0, 1, 2, 3};
  do {
    const tensor y = call("Transpose", {x}, with("perm", perm)).at(0);
    const shape& out = y.dims();
    bool same = true;
    int64_t i = 0;
    for (int64_t a = 0; a < out[0]; ++a)
      for (int64_t b = 0; b < out[1]; ++b)
        for (int64_t c = 0; c < out[2]; ++c)
          for (int64_t d = 0; d < out[3]; ++d)
            same = same && y.data<float>()[i++] == static_cast<float>(a * strides[perm[0]] + b * strides[perm[1]] +
                                                                      c * strides[perm[2]] + d * strides[perm[3]]);
    CHECK(same);
  } while (std::next_permutation(perm.begin(), perm.end()));
}

TEST_CASE("Strings move too", "[ops]") {
  const std::vector<std::string> words{"a", "bb", "a string too long for the small buffer", "d"};
  const tensor x = tensor::of<std::string>({2, 2}, words);
  const tensor y = call("Transpose", {x}).at(0);
  CHECK(y.values<std::string>()[1] == words[2]);
  const tensor z = call("Gather", {x, ints({1}, {-1})}).at(0);
  CHECK(z.values<std::string>()[0] == words[2]);
  const tensor both = call("Concat", {x, x}, with("axis", int64_t{1})).at(0);
  CHECK(both.values<std::string>()[3] == words[1]);
}

TEST_CASE("Split gives uneven parts if the opset allows them", "[ops]") {
  const auto parts = call("Split", {iota({7})}, with("num_outputs", int64_t{3}), 3);
  CHECK(floats(parts[2]) == std::vector<float>{6});
  CHECK_THROWS_AS(call("Split", {iota({7})}, {}, 3, 13), error);
  CHECK_THROWS_AS(call("Split", {iota({7}), ints({2}, {3, 3})}, {}, 2), error);
  CHECK_THROWS_AS(call("Split", {iota({7}), ints({2}, {8, -1})}, {}, 2), error);
}

TEST_CASE("An index out of bounds is an error that names it", "[ops]") {
  const tensor x = iota({2, 3});
  CHECK_THROWS_WITH(call("Gather", {x, ints({1}, {2})}), Catch::Contains("index 2") && Catch::Contains("dim of 2"));
  CHECK_THROWS_AS(call("Gather", {x, ints({1}, {INT64_MIN})}), error);
  CHECK_THROWS_AS(call("GatherElements", {x, ints({1, 1}, {-3})}), error);
  CHECK_THROWS_AS(call("GatherElements", {x, ints({1, 4}, {0, 0, 0, 0})}), error);
  CHECK_THROWS_AS(call("GatherND", {x, ints({1, 2}, {0, 3})}), error);
  CHECK_THROWS_AS(call("GatherND", {x, ints({1, 3}, {0, 0, 0})}), error);
}

TEST_CASE("Range counts without overflow", "[ops]") {
  CHECK_THROWS_AS(call("Range", {ints({}, {0}), ints({}, {1}), ints({}, {0})}), error);
  CHECK(call("Range", {ints({}, {5}), ints({}, {INT64_MIN}), ints({}, {INT64_MIN})}).at(0).size() == 2);
  CHECK(call("Range", {ints({}, {5}), ints({}, {5}), ints({}, {-1})}).at(0).size() == 0);
}
