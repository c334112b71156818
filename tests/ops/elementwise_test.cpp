#include "ops/conformance_case.hpp"
#include "ops/evaluate.hpp"
#include "ops/registry.hpp"
#include "support/catch.hpp"
#include "support/graph_builder.hpp"

#include <limits>

using namespace troupe;
using troupe::testing::difference;

namespace {

tensor floats(shape dims, std::vector<float> values) {
  return tensor::of<float>(std::move(dims), std::span<const float>(values));
}

template <class T>
tensor ints(shape dims, std::vector<T> values) {
  return tensor::of<T>(std::move(dims), std::span<const T>(values));
}

tensor run(std::string_view op, int64_t opset, const std::vector<tensor>& inputs, const attributes& attrs = {}) {
  const op_def* def = find_op("", op, opset);
  REQUIRE(def);
  return evaluate(*def, attrs, inputs).at(0);
}

} // namespace

TEST_CASE("Binary operators broadcast along every axis", "[ops]") {
  const tensor a = floats({2, 1, 3}, {1, 2, 3, 4, 5, 6}), b = floats({2, 1}, {10, 20});
  CHECK(difference(run("Add", 14, {a, b}), floats({2, 2, 3}, {11, 12, 13, 21, 22, 23, 14, 15, 16, 24, 25, 26})) == "");
  CHECK(difference(run("Sub", 14, {floats({}, {1}), a}), floats({2, 1, 3}, {0, -1, -2, -3, -4, -5})) == "");
  CHECK(difference(run("Mul", 14, {a, floats({3}, {1, 0, -1})}), floats({2, 1, 3}, {1, 0, -3, 4, 0, -6})) == "");
  CHECK(run("Add", 14, {floats({0, 3}, {}), floats({3}, {1, 2, 3})}).dims() == shape{0, 3});
  CHECK_THROWS_AS(run("Add", 14, {floats({2}, {1, 2}), floats({3}, {1, 2, 3})}), error);
}

TEST_CASE("Large broadcasts over several threads give the same as small ones", "[ops]") {
  const int64_t rows = 700, columns = 301;
  std::vector<float> a(rows * columns), b(rows), expected(rows * columns);
  for (int64_t i = 0; i < rows * columns; ++i)
    a[i] = static_cast<float>(i % 97);
  for (int64_t i = 0; i < rows; ++i)
    b[i] = static_cast<float>(i);
  for (int64_t i = 0; i < rows * columns; ++i)
    expected[i] = a[i] - b[i / columns];
  CHECK(difference(run("Sub", 14, {floats({rows, columns}, a), floats({rows, 1}, b)}),
                   floats({rows, columns}, expected)) == "");
}

TEST_CASE("Until opset 6 the second operand starts at an axis", "[ops]") {
  attributes attrs;
  attrs.set("broadcast", int64_t{1});
  const tensor a = floats({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), b = floats({2}, {10, 20});
  CHECK(difference(run("Add", 6, {a, b}, attrs), floats({2, 2, 2}, {11, 22, 13, 24, 15, 26, 17, 28})) == "");
  attrs.set("axis", int64_t{1});
  CHECK(difference(run("Add", 6, {a, b}, attrs), floats({2, 2, 2}, {11, 12, 23, 24, 15, 16, 27, 28})) == "");
  attrs.set("axis", int64_t{7});
  CHECK_THROWS_AS(run("Add", 6, {a, b}, attrs), error);
}

TEST_CASE("Integer arithmetic is defined for every operand", "[ops]") {
  constexpr int32_t lowest = std::numeric_limits<int32_t>::min();
  const tensor a = ints<int32_t>({4}, {7, -7, lowest, 5}), b = ints<int32_t>({4}, {2, 2, -1, 0});
  CHECK(difference(run("Div", 14, {a, b}), ints<int32_t>({4}, {3, -3, lowest, 0})) == "");
  CHECK(difference(run("Mod", 13, {a, b}), ints<int32_t>({4}, {1, 1, 0, 0})) == "");
  CHECK(difference(run("Abs", 13, {a}), ints<int32_t>({4}, {7, 7, lowest, 5})) == "");
  CHECK(difference(run("Pow", 15, {ints<int64_t>({4}, {-2, 3, 0, 2}), ints<int32_t>({4}, {3, 4, -1, 64})}),
                   ints<int64_t>({4}, {-8, 81, 0, 0})) == "");
}

TEST_CASE("what is compared with NaN is 0 where the definition says so", "[ops]") {
  const tensor x = floats({3}, {NAN, 2, -2});
  CHECK(difference(run("ThresholdedRelu", 10, {x}), floats({3}, {0, 2, 0})) == "");
  CHECK(difference(run("Shrink", 9, {x}), floats({3}, {0, 2, -2})) == "");
}

TEST_CASE("Clip without a bound limits to the type's lowest and largest number", "[ops]") {
  constexpr float infinity = std::numeric_limits<float>::infinity(), largest = std::numeric_limits<float>::max();
  const tensor x = floats({3}, {-infinity, 1, infinity});
  CHECK(difference(run("Clip", 13, {x}), floats({3}, {-largest, 1, largest})) == "");
  CHECK(difference(run("Clip", 13, {x, floats({}, {0})}), floats({3}, {0, 1, largest})) == "");
  CHECK(difference(run("Clip", 13, {x, tensor(), floats({}, {0})}), floats({3}, {-largest, 0, 0})) == "");
  CHECK(difference(run("Clip", 6, {x}), floats({3}, {-largest, 1, largest})) == "");
  CHECK(difference(run("Clip", 1, {x}), x) == "");
  const tensor y = run("Clip", 13, {tensor::of<double>({1}, std::vector<double>{-1 / 0.0})});
  CHECK(y.data<double>()[0] == std::numeric_limits<double>::lowest());
}

TEST_CASE("Pow's quick exponents agree with pow", "[ops]") {
  const float inf = INFINITY;
  const tensor x = floats({6}, {-2, -0.f, 0.25f, 3, inf, -inf});
  CHECK(difference(run("Pow", 15, {x, floats({}, {2})}), floats({6}, {4, 0, 0.0625f, 9, inf, inf})) == "");
  CHECK(difference(run("Pow", 15, {x, floats({}, {0.5f})}), floats({6}, {NAN, 0, 0.5f, 1.7320508f, inf, inf})) == "");
}

TEST_CASE("Cast saturates floats and wraps integers", "[ops]") {
  attributes to_int8, to_half;
  to_int8.set("to", int64_t{3});
  to_half.set("to", int64_t{10});
  CHECK(difference(run("Cast", 13, {floats({5}, {-1.9f, 300, -1e30f, NAN, 7})}, to_int8),
                   ints<int8_t>({5}, {-1, 127, -128, 0, 7})) == "");
  CHECK(difference(run("Cast", 13, {ints<int64_t>({2}, {257, -129})}, to_int8), ints<int8_t>({2}, {1, 127})) == "");
  const std::vector<std::string> words{"1.5", "-INF"};
  CHECK(std::isinf(static_cast<float>(
      run("Cast", 13, {tensor::of<std::string>({2}, std::span(words))}, to_half).data<float16>()[1])));
  const std::vector<std::string> nonsense{"troupe"};
  CHECK_THROWS_AS(run("Cast", 13, {tensor::of<std::string>({1}, std::span(nonsense))}, to_half), error);
}

TEST_CASE("Every float8 value survives the way to float and back", "[ops]") {
  for (int64_t type : {17, 18, 19, 20}) {
    attributes to_float, back;
    to_float.set("to", int64_t{1});
    back.set("to", type);
    tensor all(static_cast<dtype>(type), {256});
    for (int i = 0; i < 256; ++i)
      all.mutable_data<uint8_t>()[i] = static_cast<uint8_t>(i);
    const tensor values = run("Cast", 19, {all}, to_float), again = run("Cast", 19, {values}, back);
    for (int i = 0; i < 256; ++i)
      if (std::isfinite(values.data<float>()[i]))
        CHECK(static_cast<int>(again.data<uint8_t>()[i]) == i);
  }
}

TEST_CASE("Shape arithmetic stays known through symbolic dims", "[ops]") {
  test::graph_builder b(19);
  const dim seq = dim::symbol("seq");
  const auto add = [&](std::vector<dim> elements) {
    const auto size = static_cast<int64_t>(elements.size());
    return b.known({size}, std::move(elements));
  };
  const auto result = [&](const char* op, std::vector<value_id> inputs) {
    return b.g.values[b.inferred(op, std::move(inputs))].known;
  };
  const value_id a = add({seq, 4}), minus = add({-1, 4}), two = add({2});
  CHECK((*result("Mul", {a, two}))[0] == seq * 2);
  CHECK((*result("Div", {a, two}))[0] == floor_div(seq, 2));
  CHECK((*result("Equal", {a, minus}))[0].is(0)); // a dim is never -1
  CHECK((*result("Equal", {a, minus}))[1].is(1));
  CHECK_FALSE(result("Equal", {a, two}).has_value()); // seq may be 2
  const value_id condition = add({0, 1});
  b.g.values[condition].type = dtype::boolean;
  CHECK((*result("Where", {condition, minus, a}))[0] == seq);
  CHECK((*result("Where", {condition, minus, a}))[1].is(4));
}

TEST_CASE("Blocked and per-axis quantisation goes there and back", "[ops]") {
  attributes attrs;
  attrs.set("axis", int64_t{0});
  attrs.set("block_size", int64_t{2});
  const tensor x = floats({3, 2}, {2, 4, 6, 8, 10, 12}), scale = floats({2, 2}, {2, 4, 5, 6});
  const tensor zero = ints<uint8_t>({2, 2}, {1, 0, 3, 0});
  const tensor y = run("QuantizeLinear", 21, {x, scale, zero}, attrs);
  CHECK(difference(y, ints<uint8_t>({3, 2}, {2, 1, 4, 2, 5, 2})) == "");
  CHECK(difference(run("DequantizeLinear", 21, {y, scale, zero}, attrs), x) == "");
  attrs.erase("block_size");
  CHECK_THROWS_AS(run("QuantizeLinear", 21, {x, scale, zero}, attrs), error);
  CHECK(difference(run("QuantizeLinear", 13, {x, floats({3}, {2, 3, 4}), ints<int8_t>({3}, {0, 0, 127})}, attrs),
                   ints<int8_t>({3, 2}, {1, 2, 2, 3, 127, 127})) == "");
}

TEST_CASE("MatMulNBits unpacks low nibbles first", "[ops]") {
  attributes attrs;
  attrs.set("K", int64_t{18});
  attrs.set("N", int64_t{1});
  attrs.set("bits", int64_t{4});
  attrs.set("block_size", int64_t{16});
  std::vector<float> a(18, 0.f);
  a[0] = 1, a[1] = 10, a[17] = 100;
  std::vector<uint8_t> b(16, 0x88);
  b[0] = 0x9a; // codes 10, 9
  b[8] = 0x7f; // codes 15, 7 of the second block
  const op_def* def = find_op("com.microsoft", "MatMulNBits", 1);
  REQUIRE(def);
  std::vector<tensor> inputs{floats({1, 18}, a), ints<uint8_t>({1, 2, 8}, b), floats({2}, {0.5f, 2})};
  CHECK(difference(evaluate(*def, attrs, inputs).at(0), floats({1, 1}, {0.5f * (2 + 10) + 2 * 100 * -1})) == "");
  inputs.push_back(ints<uint8_t>({1}, {0x19})); // zero points 9 and 1
  CHECK(difference(evaluate(*def, attrs, inputs).at(0), floats({1, 1}, {0.5f * 1 + 2 * 100 * 6})) == "");
}
