#include "tensor/float8.hpp"

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
    if (const float x = decode_float8(type, static_cast<uint8_t>(bits)); std::isfinite(x))
      most = std::max(most, x);
  return most;
}

} // namespace

TEST_CASE("every float8 value is encoded as the bits that it was decoded from", "[tensor]") {
  for (dtype type : all_types)
    for (int bits = 0; bits < 256; ++bits) {
      const float x = decode_float8(type, static_cast<uint8_t>(bits));
      INFO(to_string(type) << " " << bits);
      if (std::isnan(x))
        CHECK(std::isnan(decode_float8(type, encode_float8(type, x, true))));
      else
        CHECK(static_cast<int>(encode_float8(type, x, false)) == bits);
    }
}

TEST_CASE("float8 types reach as far as their definition says", "[tensor]") {
  CHECK(largest(dtype::float8e4m3fn) == 448);
  CHECK(largest(dtype::float8e4m3fnuz) == 240);
  CHECK(largest(dtype::float8e5m2) == 57344);
  CHECK(largest(dtype::float8e5m2fnuz) == 57344);
  for (dtype type : all_types) {
    for (float x : {infinity, 1e9f}) {
      CHECK(decode_float8(type, encode_float8(type, x, true)) == largest(type));
      CHECK(decode_float8(type, encode_float8(type, -x, true)) == -largest(type));
      const float unsaturated = decode_float8(type, encode_float8(type, x, false));
      CHECK((type == dtype::float8e5m2 ? unsaturated == infinity : std::isnan(unsaturated)));
    }
    CHECK(is_float8(type));
  }
  CHECK_FALSE(is_float8(dtype::float16));
}

TEST_CASE("float8 rounds to the nearest value, ties to even", "[tensor]") {
  const auto rounded = [](float x) {
    return decode_float8(dtype::float8e4m3fn, encode_float8(dtype::float8e4m3fn, x, true));
  };
  CHECK(rounded(1.0625f) == 1.f); // between 1 and 1.125
  CHECK(rounded(1.1875f) == 1.25f);
  CHECK(rounded(1.07f) == 1.125f);
}
