// Pad, Tile, Scatter, Resize and the operators whose output sizes depend on the data.
#include "ops/movement_calls.hpp"
#include "support/catch.hpp"
#include "support/graph_builder.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

using namespace troupe;
using namespace troupe::testing;

namespace {

tensor reals(shape dims, std::vector<float> values) {
  return tensor::of<float>(std::move(dims), values);
}

std::vector<int64_t> numbers(const tensor& t) {
  return {t.values<int64_t>().begin(), t.values<int64_t>().end()};
}

} // namespace

TEST_CASE("Pad's modes agree with NumPy, negative pads crop", "[ops]") {
  const tensor x = reals({4}, {0, 1, 2, 3});
  const auto pad = [&](const char* mode, int64_t begin, int64_t end) {
    return floats(call("Pad", {x, ints({2}, {begin, end})}, with("mode", std::string(mode))).at(0));
  };
  CHECK(pad("constant", 1, 2) == std::vector<float>{0, 0, 1, 2, 3, 0, 0});
  CHECK(pad("edge", 1, 2) == std::vector<float>{0, 0, 1, 2, 3, 3, 3});
  CHECK(pad("reflect", 3, 5) == std::vector<float>{3, 2, 1, 0, 1, 2, 3, 2, 1, 0, 1, 2});
  CHECK(pad("wrap", 2, 5) == std::vector<float>{2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0});
  CHECK(pad("wrap", -1, 4) == std::vector<float>{1, 2, 3, 1, 2, 3, 1});
  CHECK(pad("wrap", 4, -2) == std::vector<float>{0, 1, 0, 1, 0, 1});
  CHECK(pad("constant", -1, -1) == std::vector<float>{1, 2});
  CHECK(pad("edge", -2, 1) == std::vector<float>{2, 3, 3});
  CHECK_THROWS_AS(pad("constant", -3, -2), error);
  CHECK_THROWS_AS(pad("mirror", 1, 1), error);
  CHECK_THROWS_AS(call("Pad", {reals({0}, {}), ints({2}, {1, 1})}, with("mode", std::string("edge"))), error);
  CHECK_THROWS_AS(call("Pad", {x, ints({3}, {1, 1, 1})}), error);
}

TEST_CASE("Pad names its axes, and fills with the value that it is given", "[ops]") {
  const tensor x = reals({2, 2}, {1, 2, 3, 4});
  const tensor y = call("Pad", {x, ints({2}, {1, 0}), tensor::scalar(9.f), ints({1}, {-1})}).at(0);
  CHECK(floats(y) == std::vector<float>{9, 1, 2, 9, 3, 4});
}

TEST_CASE("Tile repeats every axis", "[ops]") {
  const tensor y = call("Tile", {reals({2, 2}, {1, 2, 3, 4}), ints({2}, {2, 2})}).at(0);
  CHECK(floats(y) == std::vector<float>{1, 2, 1, 2, 3, 4, 3, 4, 1, 2, 1, 2, 3, 4, 3, 4});
  CHECK(call("Tile", {reals({2}, {1, 2}), ints({1}, {0})}).at(0).size() == 0);
  CHECK_THROWS_AS(call("Tile", {reals({2}, {1, 2}), ints({1}, {-1})}), error);
}

TEST_CASE("Scatter writes in order and checks its indices", "[ops]") {
  const tensor x = reals({3}, {1, 2, 3});
  CHECK(floats(call("ScatterElements", {x, ints({2}, {-1, -1}), reals({2}, {5, 6})}).at(0)) ==
        std::vector<float>{1, 2, 6});
  CHECK(
      floats(call("ScatterElements", {x, ints({2}, {0, 0}), reals({2}, {5, 6})}, with("reduction", std::string("add")))
                 .at(0)) == std::vector<float>{12, 2, 3});
  CHECK_THROWS_WITH(call("ScatterElements", {x, ints({1}, {3}), reals({1}, {5})}), Catch::Contains("index 3"));
  CHECK_THROWS_WITH(call("ScatterND", {x, ints({1, 1}, {-4}), reals({1}, {5})}), Catch::Contains("index -4"));
  CHECK_THROWS_AS(call("ScatterND", {x, ints({1, 2}, {0, 0}), reals({1}, {5})}), error);
  CHECK_THROWS_AS(call("ScatterElements", {x, ints({2}, {0, 0}), reals({1}, {5})}), error);
}

TEST_CASE("Resize of a symbolic dim by a float scale is exact", "[ops]") {
  test::graph_builder b(19);
  const value_id x = b.input({1, dim::symbol("h")}), scales = b.constant("scales", reals({2}, {1.f, 0.6f}));
  const symbolic_shape dims = *b.g.values[b.inferred("Resize", {x, no_value, scales})].dims;
  CHECK(dims[1].evaluate({{"h", 5}}) == 3);
  CHECK(dims[1].evaluate({{"h", 7}}) == 4);
}

TEST_CASE("Resize refuses a region that is a billion times the input", "[ops]") {
  attributes attrs = with("mode", std::string("linear"));
  attrs.set("coordinate_transformation_mode", std::string("tf_crop_and_resize"));
  attrs.set("antialias", int64_t{1});
  CHECK_THROWS_WITH(call("Resize", {reals({1}, {5}), reals({2}, {0, 1e9f}), reals({1}, {1.1e-6f})}, attrs),
                    Catch::Contains("too many taps"));
}

TEST_CASE("Resize refuses scales and sizes that make no sense", "[ops]") {
  const tensor x = reals({1, 1, 2, 2}, {1, 2, 3, 4});
  CHECK_THROWS_AS(call("Resize", {x, {}, reals({4}, {1, 1, 0, 2})}), error);
  CHECK_THROWS_AS(call("Resize", {x, {}, reals({4}, {1, 1, NAN, 2})}), error);
  CHECK_THROWS_AS(call("Resize", {x, {}, reals({3}, {1, 1, 2})}), error);
  CHECK_THROWS_AS(call("Resize", {x, {}, {}, ints({4}, {1, 1, -2, 2})}), error);
  CHECK_THROWS_AS(call("Resize", {reals({1, 0}, {}), {}, {}, ints({2}, {1, 2})}), error);
  const tensor up = call("Resize", {x, {}, reals({4}, {1, 1, 2, 2})}, with("mode", std::string("nearest"))).at(0);
  CHECK(floats(up) == std::vector<float>{1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4});
}

TEST_CASE("TopK breaks ties by index and ranks NaN highest", "[ops]") {
  const tensor x = reals({5}, {1, 3, NAN, 3, 2});
  CHECK(numbers(call("TopK", {x, ints({1}, {3})}, {}, 2).at(1)) == std::vector<int64_t>{2, 1, 3});
  CHECK(numbers(call("TopK", {x, ints({1}, {4})}, with("largest", int64_t{0}), 2).at(1)) ==
        std::vector<int64_t>{0, 4, 1, 3});
  CHECK_THROWS_AS(call("TopK", {x, ints({1}, {6})}, {}, 2), error);
}

TEST_CASE("Outputs whose size depends on the data are allocated by the kernel", "[ops]") {
  const tensor x = reals({2, 2}, {0, 5, 0, 7});
  const tensor found = call("NonZero", {x}).at(0);
  CHECK(found.dims() == shape{2, 2});
  CHECK(numbers(found) == std::vector<int64_t>{0, 1, 1, 1});
  CHECK(call("NonZero", {reals({3}, {0, 0, 0})}).at(0).dims() == shape{1, 0});
  const tensor keep(dtype::boolean, {2});
  auto* bits = const_cast<uint8_t*>(keep.data<uint8_t>());
  bits[0] = 0;
  bits[1] = 1;
  CHECK(floats(call("Compress", {x, keep}, with("axis", int64_t{1})).at(0)) == std::vector<float>{5, 7});
  const auto parts = call("Unique", {reals({5}, {2, 1, 1, 3, 2})}, with("sorted", int64_t{0}), 4);
  CHECK(floats(parts[0]) == std::vector<float>{2, 1, 3});
  CHECK(numbers(parts[1]) == std::vector<int64_t>{0, 1, 3});
  CHECK(numbers(parts[2]) == std::vector<int64_t>{0, 1, 1, 2, 0});
  CHECK(numbers(parts[3]) == std::vector<int64_t>{2, 2, 1});
}

TEST_CASE("Unique rows without elements are one, however many there are", "[ops]") {
  const auto first_rows = [](shape dims, size_t outputs) {
    return call("Unique", {tensor(dtype::float32, std::move(dims))}, with("axis", int64_t{0}), outputs);
  };
  CHECK(first_rows({int64_t{1} << 40, 0}, 1)[0].dims() == shape{1, 0});
  CHECK(first_rows({0, 3}, 1)[0].dims() == shape{0, 3});
  const auto parts = first_rows({3, 0}, 4);
  CHECK(to_int64(parts[1].view()) == std::vector<int64_t>{0});
  CHECK(to_int64(parts[2].view()) == std::vector<int64_t>{0, 0, 0});
  CHECK(to_int64(parts[3].view()) == std::vector<int64_t>{3});
}

TEST_CASE("NonMaxSuppression drops overlapping boxes", "[ops]") {
  const tensor boxes = reals({1, 3, 4}, {0, 0, 1, 1, 0, 0.1f, 1, 1.1f, 0, 10, 1, 11});
  const tensor scores = reals({1, 1, 3}, {0.9f, 0.95f, 0.5f});
  const tensor rows = call("NonMaxSuppression", {boxes, scores, ints({1}, {3}), tensor::scalar(0.5f)}).at(0);
  CHECK(numbers(rows) == std::vector<int64_t>{0, 0, 1, 0, 0, 2});
}

TEST_CASE("NonMaxSuppression of many boxes and classes is what comparing them one by one gives", "[ops]") {
  constexpr int64_t batches = 2, classes = 3, count = 700;
  constexpr float threshold = 0.3f;
  std::minstd_rand random(5);
  std::uniform_real_distribution<float> place(0, 20), size(-2, 3), score(0, 1);
  tensor boxes(dtype::float32, {batches, count, 4}), scores(dtype::float32, {batches, classes, count});
  for (int64_t i = 0; i < batches * count; ++i) {
    float* b = boxes.mutable_data<float>() + i * 4;
    b[0] = place(random), b[1] = place(random), b[2] = b[0] + size(random), b[3] = b[1] + size(random);
  }
  for (int64_t i = 0; i < scores.size(); ++i)
    scores.mutable_data<float>()[i] = std::floor(score(random) * 50); // with ties
  const auto overlap = [&](const float* a, const float* b) {
    const auto length = [](float a0, float a1, float b0, float b1) {
      return std::min(std::max(a0, a1), std::max(b0, b1)) - std::max(std::min(a0, a1), std::min(b0, b1));
    };
    const auto area = [](const float* c) { return std::abs((c[2] - c[0]) * (c[3] - c[1])); };
    const float h = length(a[0], a[2], b[0], b[2]), w = length(a[1], a[3], b[1], b[3]);
    return h > 0 && w > 0 ? h * w / (area(a) + area(b) - h * w) : 0;
  };
  std::vector<int64_t> expected;
  for (int64_t k = 0; k < batches * classes; ++k) {
    const float *s = scores.data<float>() + k * count, *b = boxes.data<float>() + k / classes * count * 4;
    std::vector<int64_t> order(count), chosen;
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return s[i] > s[j]; });
    for (int64_t i : order)
      if (chosen.size() < 300 && std::none_of(chosen.begin(), chosen.end(),
                                              [&](int64_t j) { return overlap(b + i * 4, b + j * 4) > threshold; }))
        chosen.push_back(i);
    for (int64_t i : chosen)
      expected.insert(expected.end(), {k / classes, k % classes, i});
  }
  const tensor rows = call("NonMaxSuppression", {boxes, scores, ints({1}, {300}), tensor::scalar(threshold)}).at(0);
  CHECK(numbers(rows) == expected);
  const tensor none = call("NonMaxSuppression", {reals({1, 0, 4}, {}), tensor(dtype::float32, {1, int64_t{1} << 40, 0}),
                                                 ints({1}, {3}), tensor::scalar(0.5f)})
                          .at(0);
  CHECK(none.dims() == shape{0, 3});
}

TEST_CASE("Cumulative sums run both ways, with or without their own element", "[ops]") {
  attributes attrs = with("exclusive", int64_t{1});
  attrs.set("reverse", int64_t{1});
  CHECK(floats(call("CumSum", {reals({3}, {1, 2, 4}), ints({}, {0})}, attrs).at(0)) == std::vector<float>{6, 4, 0});
}
