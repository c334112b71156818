// Random numbers: their distributions, the effect of seeds, and that the rewrite neither folds nor merges nodes that no
// seed decides. MaxRoiPool.
#include "ops/run_op.hpp"
#include "rewrite/rewrite.hpp"
#include "support/catch.hpp"
#include "support/graph_builder.hpp"
#include "support/run_graph.hpp"
#include "support/thrown.hpp"

#include <cmath>

using namespace troupe;
using namespace troupe::testing;

namespace {

std::vector<double> drawn(std::string_view op, attributes attrs, const std::vector<tensor>& inputs = {}) {
  return elements(run_op(op, 22, attrs, inputs)[0]);
}

double mean_of(const std::vector<double>& x) {
  double sum = 0;
  for (const double e : x)
    sum += e;
  return sum / static_cast<double>(x.size());
}

double deviation_of(const std::vector<double>& x) {
  double sum = 0;
  for (const double e : x)
    sum += (e - mean_of(x)) * (e - mean_of(x));
  return std::sqrt(sum / static_cast<double>(x.size()));
}

const std::vector<int64_t> many{100, 200};

} // namespace

TEST_CASE("Random numbers have the distribution that is asked for", "[ops][A1]") {
  const auto normal = drawn("RandomNormal", attrs_of({{"shape", many}, {"seed", 3.f}, {"mean", 5.f}, {"scale", 2.f}}));
  CHECK(mean_of(normal) == Approx(5).margin(0.07)); // five standard errors
  CHECK(deviation_of(normal) == Approx(2).margin(0.05));
  const auto uniform = drawn("RandomUniform", attrs_of({{"shape", many}, {"seed", 3.f}, {"low", -1.f}, {"high", 3.f}}));
  CHECK(mean_of(uniform) == Approx(1).margin(0.05));
  CHECK(deviation_of(uniform) == Approx(4 / std::sqrt(12)).margin(0.03));
  CHECK(*std::min_element(uniform.begin(), uniform.end()) >= -1);
  CHECK(*std::max_element(uniform.begin(), uniform.end()) <= 3);
  const tensor like(dtype::float16, {50, 40});
  CHECK(mean_of(drawn("RandomUniformLike", attrs_of({{"seed", 1.f}}), {like})) == Approx(0.5).margin(0.04));
  CHECK(deviation_of(drawn("RandomNormalLike", attrs_of({{"seed", 1.f}}), {like})) == Approx(1).margin(0.1));
}

TEST_CASE("Bernoulli and Multinomial choose as often as their operands say", "[ops][A1]") {
  std::vector<float> p(20'000);
  for (size_t i = 0; i < p.size(); ++i)
    p[i] = i % 2 == 0 ? 0.25f : std::numeric_limits<float>::quiet_NaN();
  const auto heads = drawn("Bernoulli", attrs_of({{"seed", 1.f}}), {tensor::of<float>({20'000}, p)});
  double even = 0;
  for (size_t i = 0; i < heads.size(); ++i) {
    CHECK((heads[i] == 0 || (heads[i] == 1 && i % 2 == 0)));
    even += heads[i];
  }
  CHECK(even / 10'000 == Approx(0.25).margin(0.025));
  const tensor logits =
      tensor::of<float>({2, 3}, std::vector<float>{std::log(1.f), std::log(2.f), std::log(5.f), 0, -1e30f, 0});
  const auto chosen = drawn("Multinomial", attrs_of({{"seed", 7.f}, {"sample_size", int64_t{8000}}}), {logits});
  REQUIRE(chosen.size() == 16'000);
  std::array<std::array<double, 3>, 2> count{};
  for (size_t i = 0; i < chosen.size(); ++i)
    ++count.at(i / 8000).at(static_cast<size_t>(chosen[i]));
  CHECK(count[0][0] / 8000 == Approx(1 / 8.).margin(0.02));
  CHECK(count[0][1] / 8000 == Approx(2 / 8.).margin(0.03));
  CHECK(count[1][1] == 0);
  CHECK(count[1][2] / 8000 == Approx(0.5).margin(0.03));
}

TEST_CASE("A seed decides random numbers; without one they differ each time", "[ops][A1]") {
  for (const char* op : {"RandomNormal", "RandomUniform"}) {
    const auto of = [&](std::optional<float> seed) {
      attributes attrs = attrs_of({{"shape", std::vector<int64_t>{30}}});
      if (seed)
        attrs.set("seed", *seed);
      return drawn(op, attrs);
    };
    CHECK(of(1.f) == of(1.f));
    CHECK(of(1.f) != of(1.5f));
    CHECK(of({}) != of({}));
  }
}

TEST_CASE("Random numbers have the type that is stated, or that of the operand", "[ops][A1]") {
  const auto type_of = [](std::string_view op, attributes attrs, const std::vector<tensor>& inputs = {}) {
    return run_op(op, 22, attrs, inputs)[0].type();
  };
  tensor probabilities(dtype::float16, {3, 2});
  std::fill_n(probabilities.mutable_data<float16>(), 6, float16(0.5f));
  CHECK(type_of("RandomNormal", attrs_of({{"shape", many}})) == dtype::float32);
  CHECK(type_of("RandomUniform", attrs_of({{"shape", many}, {"dtype", int64_t{11}}})) == dtype::float64);
  CHECK(type_of("RandomNormalLike", {}, {probabilities}) == dtype::float16);
  CHECK(type_of("RandomUniformLike", attrs_of({{"dtype", int64_t{1}}}), {tensor(dtype::int64, {4})}) == dtype::float32);
  CHECK(type_of("Bernoulli", attrs_of({{"dtype", int64_t{9}}}), {probabilities}) == dtype::boolean);
  CHECK(type_of("Multinomial", {}, {probabilities}) == dtype::int32);
  CHECK(type_of("Multinomial", attrs_of({{"dtype", int64_t{7}}}), {probabilities}) == dtype::int64);
  CHECK_THROWS_WITH(type_of("RandomNormal", attrs_of({{"shape", many}, {"dtype", int64_t{7}}})),
                    Catch::Contains("int64"));
}

TEST_CASE("The rewrite neither folds nor merges random numbers that no seed decides", "[ops][rewrite][A1]") {
  for (const bool seeded : {false, true}) {
    test::graph_builder b(22);
    const auto noise = [&] {
      attributes attrs = attrs_of({{"shape", std::vector<int64_t>{50}}});
      if (seeded)
        attrs.set("seed", 2.f);
      return b.op("RandomNormal", {}, attrs);
    };
    const value_id x = b.input("x", {50}), first = noise(), second = noise();
    b.output(b.op("Add", {x, b.op("Sub", {first, second})}));
    const graph g = rewrite(b.g, {});
    CHECK(test::count_nodes(g, "RandomNormal") == (seeded ? 0 : 2));
    const std::vector<tensor> zeros{tensor::of<float>({50}, std::vector<float>(50))};
    const auto once = elements(test::run_graph(g, zeros)[0]), again = elements(test::run_graph(g, zeros)[0]);
    CHECK((once == again) == seeded);
    CHECK((deviation_of(once) == 0) == seeded);
  }
}

TEST_CASE("MaxRoiPool takes the largest of whole elements", "[ops][A1]") {
  std::vector<float> image(2 * 2 * 4 * 6);
  for (size_t i = 0; i < image.size(); ++i)
    image[i] = static_cast<float>(i * 7 % 31) - 15;
  const tensor x = tensor::of<float>({2, 2, 4, 6}, image);
  const std::vector<float> regions{0,    0, 0, 5, 3, 1,  2.6f, 1,
                                   4.4f, 2, 1, 9, 9, 12, 12}; // whole; columns 3 to 4, rows 1 to 2; outside
  const auto y = drawn("MaxRoiPool", attrs_of({{"pooled_shape", std::vector<int64_t>{2, 3}}}),
                       {x, tensor::of<float>({3, 5}, regions)});
  const auto most = [&](size_t image_of, size_t channel, size_t top, size_t bottom, size_t left, size_t right) {
    double found = -100;
    for (size_t i = top; i < bottom; ++i)
      for (size_t j = left; j < right; ++j)
        found = std::max<double>(found, image[((image_of * 2 + channel) * 4 + i) * 6 + j]);
    return found;
  };
  REQUIRE(y.size() == 3 * 2 * 2 * 3);
  for (size_t channel = 0; channel < 2; ++channel)
    for (size_t i = 0; i < 2; ++i)
      for (size_t j = 0; j < 3; ++j) {
        const size_t at = (channel * 2 + i) * 3 + j;
        CHECK(y[at] == most(0, channel, 2 * i, 2 * i + 2, 2 * j, 2 * j + 2));
        const size_t left = 3 + 2 * j / 3, right = 3 + (2 * (j + 1) + 2) / 3; // two columns in three bins
        CHECK(y[12 + at] == most(1, channel, 1 + i, 2 + i, left, right));
        CHECK(y[24 + at] == 0);
      }
  CHECK_THROWS_WITH(drawn("MaxRoiPool", attrs_of({{"pooled_shape", std::vector<int64_t>{1, 1}}}),
                          {x, tensor::of<float>({1, 5}, std::vector<float>{2, 0, 0, 1, 1})}),
                    Catch::Contains("region 0 is of image 2"));
}
