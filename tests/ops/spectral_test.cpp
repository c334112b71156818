#include "ops/run_op.hpp"
#include "support/catch.hpp"

#include <cmath>

using namespace troupe;
using namespace troupe::testing;

namespace {

std::vector<double> window(const char* name, int64_t size, int64_t periodic, dtype type = dtype::float64) {
  const auto attrs = attrs_of({{"periodic", periodic}, {"output_datatype", static_cast<int64_t>(type)}});
  const tensor y = run_op(name, 17, attrs, {tensor::scalar(size)})[0];
  CHECK(y.type() == type);
  return elements(y);
}

void check_close(const std::vector<double>& y, const std::vector<double>& expected) {
  REQUIRE(y.size() == expected.size());
  for (size_t i = 0; i < y.size(); ++i)
    CHECK(y[i] == Approx(expected[i]).margin(1e-12));
}

/// num_mel_bins, dft_length, sample_rate, lower and upper edge.
std::vector<tensor> mel_inputs(int64_t bands, int64_t dft_length, int64_t rate, float lower, float upper) {
  return {tensor::scalar(bands), tensor::scalar(dft_length), tensor::scalar(rate), tensor::scalar(lower),
          tensor::scalar(upper)};
}

} // namespace

TEST_CASE("Windows follow their formulas, periodic and symmetric", "[ops][spectral]") {
  check_close(window("HannWindow", 4, 1), {0, 0.5, 1, 0.5});
  check_close(window("HannWindow", 5, 0), {0, 0.5, 1, 0.5, 0});
  check_close(window("HannWindow", 3, 1), {0, 0.75, 0.75});
  check_close(window("HammingWindow", 4, 1), {4. / 46, 25. / 46, 1, 25. / 46});
  check_close(window("HammingWindow", 3, 0), {4. / 46, 1, 4. / 46});
  check_close(window("BlackmanWindow", 4, 1), {0, 0.34, 1, 0.34});
  check_close(window("BlackmanWindow", 5, 0), {0, 0.34, 1, 0.34, 0});
  check_close(window("HannWindow", 1, 1), {0});
  check_close(window("HammingWindow", 1, 1), {4. / 46});
}

TEST_CASE("Windows of no point are empty, symmetric ones of one point 1", "[ops][spectral]") {
  for (const char* name : {"HannWindow", "HammingWindow", "BlackmanWindow"}) {
    CHECK(window(name, 0, 1).empty());
    CHECK(window(name, 0, 0).empty());
    CHECK(window(name, 1, 0) == std::vector<double>{1});
  }
}

TEST_CASE("Windows are of any number type, float32 if none is stated", "[ops][spectral]") {
  CHECK(run_op("HannWindow", 17, {}, {tensor::scalar(int32_t{4})})[0].type() == dtype::float32);
  CHECK(window("HannWindow", 4, 1, dtype::float16) == std::vector<double>{0, 0.5, 1, 0.5});
  CHECK(window("HannWindow", 4, 1, dtype::bfloat16) == std::vector<double>{0, 0.5, 1, 0.5});
  for (const dtype type : {dtype::int8, dtype::uint16, dtype::int64, dtype::uint64})
    CHECK(window("HannWindow", 4, 1, type) == std::vector<double>{0, 0, 1, 0});
}

TEST_CASE("Mel bands are triangles with their tops at 1", "[ops][spectral]") {
  // 16 bands between 300 and 8000 hertz: wide ones at the end.
  const tensor y = run_op("MelWeightMatrix", 17, {}, mel_inputs(16, 512, 16000, 300, 8000))[0];
  REQUIRE(y.dims() == shape{257, 16});
  const std::vector<double> w = elements(y);
  for (size_t band = 0; band < 16; ++band) {
    size_t top = 0;
    for (size_t bin = 0; bin < 257; ++bin)
      if (w[bin * 16 + band] == 1)
        top = bin;
    CHECK(top > 0);
    for (size_t bin = 1; bin < 257; ++bin)
      CHECK((bin <= top ? w[bin * 16 + band] >= w[(bin - 1) * 16 + band]
                        : w[bin * 16 + band] <= w[(bin - 1) * 16 + band]));
  }
  // Band 0 has its edges at bins 9, 13 and 18: 513 · hertz / 16000, rounded down.
  const auto column = [&](size_t bin) { return w[bin * 16]; };
  CHECK(column(9) == 0);
  CHECK(column(11) == Approx(2. / 4));
  CHECK(column(13) == 1);
  CHECK(column(15) == Approx(3. / 5));
  CHECK(column(18) == 0);
}

TEST_CASE("Mel bands narrower than a bin count that bin", "[ops][spectral]") {
  const tensor y = run_op("MelWeightMatrix", 17, {}, mel_inputs(4, 2, 16000, 0, 8000))[0];
  REQUIRE(y.dims() == shape{2, 4});
  CHECK(elements(y) == std::vector<double>{1, 1, 1, 1, 0, 0, 0, 0});
  const tensor whole = run_op("MelWeightMatrix", 17, {}, mel_inputs(3, 7, 9, 4.5f, 4.5))[0];
  CHECK(elements(whole) == std::vector<double>{0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1}); // all at half the sample rate
}

TEST_CASE("Windows and mel bands refuse operands that make no sense", "[ops][spectral]") {
  CHECK_THROWS_WITH(window("HannWindow", -1, 1), Catch::Contains("-1 points"));
  CHECK_THROWS_WITH(window("HannWindow", 4, 1, dtype::boolean), Catch::Contains("bool"));
  CHECK_THROWS_WITH(run_op("HannWindow", 17, {}, {longs({4, 4})}), Catch::Contains("2 elements instead of one"));
  CHECK_THROWS_AS(window("HannWindow", int64_t{1} << 62, 1), error);
  const auto refuses = [](const std::vector<tensor>& inputs, const char* text) {
    CHECK_THROWS_WITH(run_op("MelWeightMatrix", 17, {}, inputs), Catch::Contains(text));
  };
  refuses(mel_inputs(0, 16, 8000, 0, 4000), "must be positive, not 0");
  refuses(mel_inputs(4, -2, 8000, 0, 4000), "must be positive, not -2");
  refuses(mel_inputs(4, 16, 0, 0, 4000), "sample_rate must be positive");
  refuses(mel_inputs(4, 16, 8000, -1, 4000), "from -1 to 4000 hertz");
  refuses(mel_inputs(4, 16, 8000, 0, 4001), "from 0 to 4001 hertz");
  refuses(mel_inputs(4, 16, 8000, 3000, 2000), "from 3000 to 2000 hertz");
  refuses(mel_inputs(4, 16, 8000, NAN, 2000), "hertz");
  auto list = mel_inputs(4, 16, 8000, 0, 4000);
  list[4] = floats({2}, {1, 2});
  refuses(list, "upper_edge_hertz is 2 elements");
}
