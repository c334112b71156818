#include "ops/run_op.hpp"
#include "support/catch.hpp"

#include <cstring>

using namespace troupe;
using namespace troupe::testing;

namespace {

tensor bit_cast_to(const tensor& x, dtype to) {
  return run_op("BitCast", 26, attrs_of({{"to", static_cast<int64_t>(to)}}), {x})[0];
}

} // namespace

TEST_CASE("BitCast keeps the bits, between all types of the same width", "[ops][bitcast]") {
  const std::vector<std::vector<dtype>> widths{
      {dtype::int4, dtype::uint4},
      {dtype::int8, dtype::uint8, dtype::float8e4m3fn, dtype::float8e4m3fnuz, dtype::float8e5m2, dtype::float8e5m2fnuz},
      {dtype::int16, dtype::uint16, dtype::float16, dtype::bfloat16},
      {dtype::int32, dtype::uint32, dtype::float32},
      {dtype::int64, dtype::uint64, dtype::float64}};
  for (const auto& width : widths)
    for (const dtype from : width)
      for (const dtype to : width) {
        tensor x(from, {3});
        for (int64_t i = 0; i < x.bytes(); ++i) // NaNs of all kinds among them
          static_cast<uint8_t*>(x.mutable_data())[i] = static_cast<uint8_t>(0xff - i * 37);
        const tensor y = bit_cast_to(x, to);
        INFO(to_string(from) << " to " << to_string(to));
        CHECK(y.type() == to);
        CHECK(y.dims() == shape{3});
        CHECK(std::memcmp(y.data(), x.data(), static_cast<size_t>(x.bytes())) == 0);
      }
}

TEST_CASE("BitCast to booleans asks for any bit", "[ops][bitcast]") {
  const tensor y = bit_cast_to(tensor::of<uint8_t>({4}, std::vector<uint8_t>{0, 1, 2, 255}), dtype::boolean);
  CHECK(std::vector<uint8_t>(y.data<uint8_t>(), y.data<uint8_t>() + 4) == std::vector<uint8_t>{0, 1, 1, 1});
  CHECK(elements(bit_cast_to(y, dtype::int8)) == std::vector<double>{0, 1, 1, 1});
  CHECK(bit_cast_to(tensor(dtype::float32, {0, 2}), dtype::int32).dims() == shape{0, 2});
}

TEST_CASE("BitCast refuses other widths and texts", "[ops][bitcast]") {
  CHECK_THROWS_WITH(bit_cast_to(ramp({2}), dtype::int64), Catch::Contains("32 bits") && Catch::Contains("64"));
  CHECK_THROWS_WITH(bit_cast_to(ramp({2}), dtype::string), Catch::Contains("string is not supported"));
  CHECK_THROWS_AS(bit_cast_to(tensor::scalar(std::string("x")), dtype::int32), error);
  CHECK_THROWS_AS(run_op("BitCast", 26, {}, {ramp({2})}), error); // no type
}
