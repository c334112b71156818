#include "tensor/convert.hpp"

#include "support/catch.hpp"
#include "support/thrown.hpp"
#include "tensor/half_rows.hpp"

#include <bit>
#include <cmath>

using namespace troupe;
using namespace troupe::test;

namespace {

template <class To, class From>
std::vector<To> converted(const std::vector<From>& elements) {
  const shape dims{static_cast<int64_t>(elements.size())};
  tensor to(dtype_of<To>, dims);
  convert(tensor::of<From>(dims, elements).view(), to.mutable_ref());
  return {to.values<To>().begin(), to.values<To>().end()};
}

constexpr float infinity = std::numeric_limits<float>::infinity(),
                not_a_number = std::numeric_limits<float>::quiet_NaN();

} // namespace

TEST_CASE("floats become integers towards zero, saturate, and NaN becomes 0", "[tensor]") {
  CHECK(converted<int8_t, float>({1.9f, -1.9f, 300, -300, infinity, -infinity, not_a_number}) ==
        std::vector<int8_t>{1, -1, 127, -128, 127, -128, 0});
  CHECK(converted<uint8_t, float>({-0.5f, -3, 255.9f, 256}) == std::vector<uint8_t>{0, 0, 255, 255});
  CHECK(converted<int64_t, double>({9.3e18, -9.3e18}) == std::vector<int64_t>{INT64_MAX, INT64_MIN});
  CHECK(to_integer<uint64_t>(1.9e19) == UINT64_MAX);
  CHECK(to_integer<int32_t>(-2147483648.0f) == INT32_MIN);
}

TEST_CASE("integers wrap into narrower ones", "[tensor]") {
  CHECK(converted<int8_t, int64_t>({257, -129, 128}) == std::vector<int8_t>{1, 127, -128});
  CHECK(converted<uint16_t, int32_t>({-1}) == std::vector<uint16_t>{65535});
}

TEST_CASE("numbers become text and back", "[tensor]") {
  CHECK(converted<float, std::string>({"1.5", "-3", "-INF"}) == std::vector<float>{1.5f, -3.f, -infinity});
  CHECK(converted<std::string, int64_t>({-12}) == std::vector<std::string>{"-12"});
  CHECK(converted<std::string, float>({1, 0.5f, -2.25f, 1e10f, 0.6048455f, 1 / 3.f, -0.f, -infinity}) ==
        std::vector<std::string>{"1", "0.5", "-2.25", "1e+10", "0.6048455", "0.33333334", "-0", "-INF"});
  tensor truth(dtype::boolean, {}), text(dtype::string, {});
  *static_cast<uint8_t*>(truth.mutable_ref().data) = 1;
  convert(truth.view(), text.mutable_ref());
  CHECK(text.values<std::string>()[0] == "1");
  const double third = 1.0 / 3;
  CHECK(converted<double, std::string>(converted<std::string, double>({third})) == std::vector<double>{third});
  CHECK(thrown_by([] { converted<float, std::string>({"troupe"}); }).code() == errc::invalid_input);
}

TEST_CASE("large tensors are converted element by element, whatever threads do", "[tensor]") {
  std::vector<int32_t> numbers(100'003);
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<int32_t>(i) - 50'000;
  const std::vector<float> floats = converted<float>(numbers);
  CHECK(converted<int32_t>(floats) == numbers);
}

TEST_CASE("halves become floats and back in rows as they do one by one", "[tensor]") {
  int64_t wrong = 0;
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    float16 half;
    half.bits = static_cast<uint16_t>(bits);
    const float one = half, row = widened(half);
    wrong += std::isnan(one)
                 ? !std::isnan(row) || !std::isnan(float(narrowed(row)))
                 : std::bit_cast<uint32_t>(row) != std::bit_cast<uint32_t>(one) || narrowed(row).bits != bits;
  }
  std::vector<float> all;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 9973) {
    all.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    wrong += !std::isnan(all.back()) && narrowed(all.back()).bits != float16(all.back()).bits;
  }
  std::vector<float16> row(all.size());
  narrow_row(all.data(), row.data(), std::ssize(all)); // a length that no vector divides
  for (size_t i = 0; i < all.size(); ++i)
    wrong += row[i].bits != narrowed(all[i]).bits;
  CHECK(wrong == 0);
  // Halfway between two halves, at the ends of the range, and more than a vector's length.
  std::vector<float> values{2049, 2051, 65519, 65520, -65520, 1e-8f, 5.9604645e-8f, infinity, 0};
  std::vector<float> rounded{2048, 2052, 65504, infinity, -infinity, 0, 5.9604645e-8f, infinity, 0};
  for (int i = 0; i < 12; ++i) {
    values.insert(values.end(), values.begin(), values.begin() + 9);
    rounded.insert(rounded.end(), rounded.begin(), rounded.begin() + 9);
  }
  CHECK(converted<float>(converted<float16>(values)) == rounded);
  CHECK(converted<float>(converted<bfloat16>(values))[0] == 2048);
  CHECK(converted<float>(converted<bfloat16>(values))[7] == infinity);
}
