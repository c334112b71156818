#include "tensor/dtype.hpp"

#include "support/catch.hpp"
#include "support/thrown.hpp"

using namespace troupe;
using namespace troupe::test;

TEST_CASE("sizes of element types, those smaller than a byte included", "[tensor]") {
  CHECK(bytes_of(dtype::float32, 3) == 12);
  CHECK(bytes_of(dtype::int4, 3) == 2);
  CHECK(bytes_of(dtype::uint4, 4) == 2);
  CHECK(bytes_of(dtype::int2, 5) == 2);
  CHECK(bytes_of(dtype::uint2, 4) == 1);
  CHECK(bytes_of(dtype::boolean, 5) == 5);
  CHECK(thrown_by([] { bytes_of(dtype::float64, INT64_MAX / 2); }).code() == errc::invalid_model);
}

TEST_CASE("sets of types hold the types that they name", "[tensor]") {
  const dtype_set some = set_of(dtype::int8, dtype::float16);
  CHECK((some & set_of(dtype::int8)) != 0);
  CHECK((some & set_of(dtype::int16)) == 0);
  CHECK((types::numeric & types::boolean) == 0);
  CHECK((types::any & types::string) != 0);
}

TEST_CASE("visits give the C++ type, or an error that names the type that they do not know", "[tensor]") {
  const auto size = []<class T>(type_tag<T>) { return sizeof(T); };
  CHECK(visit_float(dtype::bfloat16, size) == 2);
  CHECK(visit_integer(dtype::uint64, size) == 8);
  CHECK(visit_numeric(dtype::float64, size) == 8);
  CHECK(visit_width(dtype::float16, size) == 2);
  const error e = thrown_by([&] { visit_numeric(dtype::string, size); });
  CHECK(e.code() == errc::unsupported);
  CHECK(std::string(e.what()).find("string") != std::string::npos);
  CHECK(dtype_from_onnx(1) == dtype::float32);
  CHECK(thrown_by([] { dtype_from_onnx(0); }).code() == errc::unsupported);
}
