#include "support/catch.hpp"
#include "troupe/inspect.hpp"

using namespace troupe;

namespace {

tensor zero_floats(shape dims) {
  return {dtype::float32, std::move(dims)};
}

symbolic_shape dims_from(const std::string& first, dim second) {
  return {dim::symbol(first), std::move(second)};
}

} // namespace

TEST_CASE("inputs of programs for ONNX Runtime are made to fit", "[actors]") {
  const std::vector<value_info> declared{{"x", dtype::float32, dims_from("batch", 2)},
                                         {"past", dtype::float32, dims_from("batch", dim::symbol("before"))},
                                         {"rate", dtype::float32, symbolic_shape{}},
                                         {"more", optional_of(dtype::int64), {}}};
  named_tensors given{{"x", zero_floats({3, 2})}, {"past", zero_floats({0, 0})}, {"rate", zero_floats({1, 1})}};
  take_loosely(given, declared);
  CHECK(given.at("x").dims() == shape{3, 2});
  CHECK(given.at("past").dims() == shape{3, 0});
  CHECK(given.at("rate").dims().empty());
  CHECK(given.at("more").type() == optional_of(dtype::int64));
  CHECK(given.at("more").size() == 0);

  SECTION("but a 0 stays where the value would have elements, or sizes differ") {
    given["past"] = zero_floats({0, 5});
    take_loosely(given, declared);
    CHECK(given.at("past").dims() == shape{0, 5});
    given["past"] = zero_floats({2, 0});
    take_loosely(given, declared);
    CHECK(given.at("past").dims() == shape{2, 0});
    std::vector<value_info> more = declared;
    more.push_back({"y", dtype::float32, dims_from("batch", 2)});
    given["past"] = zero_floats({0, 0});
    given["y"] = zero_floats({4, 2});
    take_loosely(given, more);
    CHECK(given.at("past").dims() == shape{0, 0});
  }
  SECTION("and a list of several is no scalar") {
    given["rate"] = zero_floats({2});
    take_loosely(given, declared);
    CHECK(given.at("rate").dims() == shape{2});
  }
}
