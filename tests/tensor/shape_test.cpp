#include "tensor/shape.hpp"

#include "support/catch.hpp"
#include "support/thrown.hpp"

using namespace troupe;
using namespace troupe::test;

TEST_CASE("strides are row-major", "[tensor]") {
  CHECK(strides_of(shape{2, 3, 4}) == shape{12, 4, 1});
  CHECK(strides_of(shape{}).empty());
}

TEST_CASE("shapes broadcast from the last dim on", "[tensor]") {
  CHECK(broadcast(shape{2, 1, 4}, shape{3, 1}) == shape{2, 3, 4});
  CHECK(broadcast(shape{}, shape{5}) == shape{5});
  CHECK(broadcast(shape{0}, shape{1}) == shape{0});
  CHECK(thrown_by([] { broadcast(shape{2}, shape{3}); }).code() == errc::invalid_input);
  CHECK(broadcast_strides(shape{3, 1}, shape{2, 3, 4}) == shape{0, 1, 0});
  CHECK(broadcast_strides(shape{2, 3, 4}, shape{2, 3, 4}) == shape{12, 4, 1});
}

TEST_CASE("volumes that are too large or negative are refused", "[tensor][limits]") {
  CHECK(volume(shape{}) == 1);
  CHECK(volume(shape{4, 0, 9}) == 0);
  CHECK(thrown_by([] { volume(shape{INT64_MAX, 2}); }).code() == errc::invalid_model);
  CHECK(thrown_by([] { volume(shape{INT64_MAX, 2, 0}); }).code() == errc::invalid_model); // also with a dim of 0
  CHECK(thrown_by([] { volume(shape{2, -1}); }).code() == errc::invalid_model);
}
