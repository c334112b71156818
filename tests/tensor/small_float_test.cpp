#include "tensor/small_float.hpp"

#include "support/catch.hpp"

#include <cmath>
#include <limits>

using namespace troupe;

namespace {

constexpr dtype all_types[] = {dtype::float8e4m3fn, dtype::float8e4m3fnuz, dtype::float8e5m2, dtype::float8e5m2fnuz};
constexpr float infinity = std::numeric_limits<float>::infinity();

/// The largest finite value of a type.
float largest(dtype type) {
  float most = 0;
  for (int bits = 0; bits < 256; ++bits)
    if (const float x = decode_small_float(type, static_cast<uint8_t>(bits)); std::isfinite(x))
      most = std::max(most, x);
  return most;
}

} // namespace

TEST_CASE("every float8 value is encoded as the bits that it was decoded from", "[tensor]") {
  for (dtype type : all_types)
    for (int bits = 0; bits < 256; ++bits) {
      const float x = decode_small_float(type, static_cast<uint8_t>(bits));
      INFO(to_string(type) << " " << bits);
      if (std::isnan(x))
        CHECK(std::isnan(decode_small_float(type, encode_small_float(type, x, {true}))));
      else
        CHECK(static_cast<int>(encode_small_float(type, x, {false})) == bits);
    }
}

TEST_CASE("float8 types reach as far as in their definition", "[tensor]") {
  CHECK(largest(dtype::float8e4m3fn) == 448);
  CHECK(largest(dtype::float8e4m3fnuz) == 240);
  CHECK(largest(dtype::float8e5m2) == 57344);
  CHECK(largest(dtype::float8e5m2fnuz) == 57344);
  for (dtype type : all_types) {
    for (float x : {infinity, 1e9f}) {
      CHECK(decode_small_float(type, encode_small_float(type, x, {true})) == largest(type));
      CHECK(decode_small_float(type, encode_small_float(type, -x, {true})) == -largest(type));
      const float unsaturated = decode_small_float(type, encode_small_float(type, x, {false}));
      CHECK((type == dtype::float8e5m2 ? unsaturated == infinity : std::isnan(unsaturated)));
    }
    CHECK(is_small_float(type));
  }
  CHECK_FALSE(is_small_float(dtype::float16));
}

TEST_CASE("float8 rounds to the nearest value, ties to even", "[tensor]") {
  const auto rounded = [](float x) {
    return decode_small_float(dtype::float8e4m3fn, encode_small_float(dtype::float8e4m3fn, x, {true}));
  };
  CHECK(rounded(1.0625f) == 1.f); // between 1 and 1.125
  CHECK(rounded(1.1875f) == 1.25f);
  CHECK(rounded(1.07f) == 1.125f);
}

TEST_CASE("float4e2m1 has eight magnitudes, and saturates", "[tensor]") {
  const auto bits = [](float x) { return static_cast<int>(encode_small_float(dtype::float4e2m1, x)); };
  const float magnitudes[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  for (int i = 0; i < 8; ++i) {
    CHECK(bits(magnitudes[i]) == i);
    CHECK(bits(-magnitudes[i]) == (i | 8));
    CHECK(decode_small_float(dtype::float4e2m1, static_cast<uint8_t>(i | 8)) == -magnitudes[i]);
  }
  CHECK(bits(0.25f) == 0); // ties to even
  CHECK(bits(0.75f) == 2);
  CHECK(bits(5) == 6);
  CHECK(bits(5.1f) == 7);
  CHECK(bits(-infinity) == 15);
  CHECK(bits(std::nanf("")) == 8);
}

TEST_CASE("float8e8m0 has powers of two, and rounds as it is told", "[tensor]") {
  const auto bits = [](float x, scale_rounding rounding, bool saturate = true) {
    return static_cast<int>(encode_small_float(dtype::float8e8m0, x, {saturate, rounding}));
  };
  for (const auto rounding : {scale_rounding::up, scale_rounding::down, scale_rounding::nearest}) {
    CHECK(bits(1, rounding) == 127);
    CHECK(bits(-4, rounding) == 129);
    CHECK(bits(0, rounding) == 0);
    CHECK(bits(std::ldexp(1.f, -127), rounding) == 0);
    CHECK(bits(std::ldexp(1.f, -126), rounding) == 1);
    CHECK(bits(infinity, rounding) == 255);
    CHECK(bits(std::nanf(""), rounding) == 255);
  }
  CHECK(bits(1.1f, scale_rounding::up) == 128);
  CHECK(bits(1.9f, scale_rounding::down) == 127);
  CHECK(bits(1.4f, scale_rounding::nearest) == 127);
  CHECK(bits(1.5f, scale_rounding::nearest) == 128);
  CHECK(bits(std::ldexp(1.2f, -127), scale_rounding::up) == 1);
  CHECK(bits(std::ldexp(1.2f, -127), scale_rounding::nearest) == 0);
  CHECK(bits(3e38f, scale_rounding::up) == 254);
  CHECK(bits(3e38f, scale_rounding::up, false) == 255);
  CHECK(bits(3e38f, scale_rounding::down, false) == 254);
  CHECK(decode_small_float(dtype::float8e8m0, 0) == std::ldexp(1.f, -127));
  CHECK(decode_small_float(dtype::float8e8m0, 254) == std::ldexp(1.f, 127));
  CHECK(std::isnan(decode_small_float(dtype::float8e8m0, 255)));
}
