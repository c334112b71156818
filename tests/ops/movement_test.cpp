#include "ops/movement_calls.hpp"
#include "support/catch.hpp"

#include <numeric>

using namespace troupe;
using namespace troupe::testing;

namespace {

tensor iota(shape dims) {
  std::vector<float> values(static_cast<size_t>(volume(dims)));
  std::iota(values.begin(), values.end(), 0.f);
  return tensor::of<float>(std::move(dims), values);
}

/// Builds graphs call by call, and infers.
struct builder {
  graph g;
  value_id input(symbolic_shape dims, dtype type = dtype::float32) {
    value v;
    v.name = "in" + std::to_string(g.values.size());
    v.type = type;
    v.dims = std::move(dims);
    return g.add_value(v);
  }
  value_id constant(std::vector<int64_t> values) {
    const auto size = static_cast<int64_t>(values.size());
    return g.add_constant("c" + std::to_string(g.values.size()), ints({size}, values));
  }
  value_id scalar(int64_t v) { return g.add_constant("s" + std::to_string(g.values.size()), ints({}, {v})); }
  value_id add(const char* op, std::vector<value_id> inputs, attributes attrs = {}) {
    node n{.op_type = op, .attrs = std::move(attrs)};
    n.def = find_op("", op, 19);
    n.inputs = std::move(inputs);
    n.outputs = {g.add_value({.name = "v" + std::to_string(g.values.size())})};
    infer_node(g, n);
    g.add_node(n);
    return n.outputs[0];
  }
  std::string dims(value_id v) { return to_string(*g.values[v].dims); }
  std::string known(value_id v) { return g.values[v].known ? to_string(*g.values[v].known) : "unknown"; }
};

const dim batch = dim::symbol("batch"), seq = dim::symbol("seq"), past = dim::symbol("past");

} // namespace

TEST_CASE("Reshape's -1 is what is left, also of symbolic dims", "[ops]") {
  builder b;
  const auto x = b.input({batch, seq + past, 768});
  CHECK(b.dims(b.add("Reshape", {x, b.constant({0, 0, 12, -1})})) ==
        to_string(symbolic_shape{batch, seq + past, 12, 64}));
  CHECK(b.dims(b.add("Reshape", {x, b.constant({-1, 768})})) == to_string(symbolic_shape{batch * (seq + past), 768}));
  CHECK_THROWS_AS(b.add("Reshape", {x, b.constant({-1, -1})}), error);
  CHECK_THROWS_AS(b.add("Reshape", {b.input({2, 3}), b.constant({4})}), error);
  CHECK_THROWS_AS(b.add("Reshape", {b.input({2, 3}), b.constant({-1, 4})}), error);
}

TEST_CASE("Exporters' shape arithmetic stays symbolic", "[ops]") {
  builder b;
  const auto x = b.input({batch, seq, 64});
  const auto s = b.add("Shape", {x});
  CHECK(b.known(s) == "[batch, seq, 64]");
  const auto first = b.add("Unsqueeze", {b.add("Gather", {s, b.scalar(0)}), b.constant({0})});
  const auto rest = b.add("Slice", {s, b.constant({-1}), b.constant({INT64_MAX})});
  const auto target = b.add("Concat", {first, b.constant({-1, 8}), rest}, with("axis", int64_t{0}));
  CHECK(b.known(target) == "[batch, -1, 8, 64]");
  const auto tokens = b.add("Squeeze", {b.add("Gather", {s, b.constant({1})}), b.constant({0})});
  const auto range = b.add("Range", {b.scalar(0), tokens, b.scalar(1)});
  CHECK(b.dims(range) == "[seq]");
  CHECK(b.known(range) == "unknown");
  CHECK(b.known(b.add("Range", {b.scalar(1), b.scalar(7), b.scalar(3)})) == "[1, 4]");
  CHECK(b.known(b.add("ConstantOfShape", {b.constant({2})}, with("value", ints({1}, {5})))) == "[5, 5]");
  CHECK(b.dims(b.add("Expand", {b.input({1, seq, 1}), b.add("Concat", {first, b.constant({1, 4})},
                                                            with("axis", int64_t{0}))})) == "[batch, seq, 4]");
}

TEST_CASE("Slice of symbolic dims follows NumPy", "[ops]") {
  builder b;
  const auto x = b.input({batch, past + seq});
  const auto slice = [&](int64_t from, int64_t to, int64_t step) {
    return *b.g.values[b.add("Slice", {x, b.constant({from}), b.constant({to}), b.constant({1}), b.constant({step})})]
                .dims;
  };
  CHECK(slice(0, INT64_MAX, 1)[1] == past + seq);
  CHECK(slice(-1, INT32_MAX, 1)[1] == dim(1));
  CHECK(slice(1, INT64_MAX, 1)[1] == past + seq - 1);
  CHECK(slice(-1, INT64_MIN, -1)[1] == past + seq);
  CHECK(slice(0, 3, 1)[1].evaluate({{"past", 1}, {"seq", 1}}) == 2);
  CHECK(slice(0, 3, 1)[1].evaluate({{"past", 4}, {"seq", 1}}) == 3);
  const auto length = b.add("Shape", {b.input({seq})});
  const auto head = b.add("Slice", {x, b.constant({0}), length, b.constant({1})});
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

TEST_CASE("Split gives uneven parts where the opset allows them", "[ops]") {
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
