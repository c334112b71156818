// RelativePositionBias against the examples of ONNX Runtime's own tests, and against T5's definition of buckets.
#include "contrib/contrib_calls.hpp"
#include "troupe/engine.hpp"
#include "troupe/model_builder.hpp"

#include <algorithm>

using namespace troupe;
using namespace troupe::testing;
using Catch::Contains;

namespace {

attributes distances(int64_t longest, bool both_ways) {
  return attrs_of({{"max_distance", longest}, {"is_bidirectional", int64_t{both_ways}}});
}

tensor bias(const tensor& table, int64_t length, const attributes& attrs) {
  const tensor count = tensor::of<int64_t>({1}, std::vector<int64_t>{length});
  return call("RelativePositionBias", attrs, {table, count, count})[0];
}

/// The bucket of a key `distance` after its query, of 32 with distances up to 128: the least distances of the wider
/// buckets, as T5 has them.
int64_t bucket_of(int64_t distance, bool both_ways) {
  const std::vector<int64_t> firsts =
      both_ways ? std::vector<int64_t>{8, 12, 16, 23, 32, 46, 64, 91}
                : std::vector<int64_t>{16, 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113};
  const int64_t length = both_ways ? std::abs(distance) : std::max<int64_t>(0, -distance);
  const auto wider = std::upper_bound(firsts.begin(), firsts.end(), length) - firsts.begin();
  return (both_ways && distance > 0 ? 16 : 0) + (wider == 0 ? length : firsts[0] + wider - 1);
}

} // namespace

TEST_CASE("RelativePositionBias gives the results of ONNX Runtime's examples", "[ops][contrib]") {
  const tensor two_heads = tensor::of<float>({4, 2}, std::vector<float>{1, 3, 5, 7, 2, 4, 6, 8});
  const tensor both_ways = bias(two_heads, 2, distances(128, true));
  CHECK(both_ways.dims() == shape{1, 2, 2, 2});
  CHECK(to_double(both_ways.view()) == std::vector<double>{1, 7, 3, 1, 2, 8, 4, 2});
  const tensor three_heads =
      converted(tensor::of<float>({4, 3}, std::vector<float>{1, 4, 7, 10, 2, 5, 8, 11, 3, 6, 9, 12}), dtype::float16);
  const tensor backwards = bias(three_heads, 2, distances(128, false));
  CHECK(backwards.type() == dtype::float16);
  CHECK(to_double(backwards.view()) == std::vector<double>{1, 1, 4, 1, 2, 2, 5, 2, 3, 3, 6, 3});
}

TEST_CASE("RelativePositionBias puts distances into T5's buckets", "[ops][contrib]") {
  const tensor table = ramp({32, 1});
  const auto numbers = to_double(table.view());
  constexpr int64_t length = 150;
  for (const bool both_ways : {false, true}) {
    const auto got = to_double(bias(table, length, distances(128, both_ways)).view());
    for (int64_t q = 0; q < length; ++q)
      for (int64_t k = 0; k < length; ++k)
        if (got[static_cast<size_t>(q * length + k)] != numbers[static_cast<size_t>(bucket_of(k - q, both_ways))])
          FAIL_CHECK("query " << q << ", key " << k << ", both ways " << both_ways);
  }
}

TEST_CASE("RelativePositionBias in a model takes its lengths from the dims of other values", "[ops][contrib]") {
  const tensor table = ramp({32, 2});
  model_builder m;
  const variable by_bucket = m.input("table", dtype::float32, {32, 2}),
                 length = m.call("Shape", {m.input("x", dtype::float32, {dim::symbol("length")})});
  m.output("y", m.call("RelativePositionBias", {by_bucket, length, length}, {{"max_distance", int64_t{128}}},
                       {.domain = "com.microsoft"}));
  engine e({.devices = {"cpu"}});
  const session s = e.load(m.build());
  for (const int64_t n : {1, 5, 200}) {
    const tensor y = s.run({{"table", table}, {"x", ramp({n})}}).outputs["y"];
    CHECK(y.dims() == shape{1, 2, n, n});
    CHECK(to_double(y.view()) == to_double(bias(table, n, distances(128, false)).view()));
  }
}

TEST_CASE("RelativePositionBias refuses buckets, lengths and distances that do not fit", "[ops][contrib]") {
  const tensor one = tensor::of<int64_t>({1}, std::vector<int64_t>{1}),
               two = tensor::of<int64_t>({1}, std::vector<int64_t>{2}),
               both = tensor::of<int64_t>({2}, std::vector<int64_t>{1, 2});
  const auto refused = [&](const tensor& table, const tensor& keys, const attributes& attrs) {
    return refusal("RelativePositionBias", attrs, {table, two, keys});
  };
  CHECK_THAT(refused(ramp({8, 1}), one, distances(128, false)), Contains("lengths of queries and keys: 2 and 1"));
  CHECK_THAT(refused(ramp({8, 1}), both, distances(128, false)), Contains("2 elements instead of one length"));
  CHECK_THAT(refused(ramp({8}), two, distances(128, false)), Contains("[8]"));
  CHECK_THAT(refused(ramp({3, 1}), two, distances(128, true)), Contains("3 buckets cannot be for distances up to 128"));
  CHECK_THAT(refused(ramp({8, 1}), two, distances(4, false)), Contains("up to 4"));
  CHECK_THAT(refused(ramp({8, 1}), two, distances(1 << 20, false)), Contains("up to 1048576"));
  CHECK_THAT(refused(ramp({8, 1}), two, {}), Contains("max_distance"));
}
