#include "base/error.hpp"
#include "support/catch.hpp"
#include "tensor/partition.hpp"

#include <numeric>

using namespace troupe;

namespace {

tensor counted(shape dims) {
  tensor t(dtype::int32, std::move(dims));
  std::iota(t.mutable_data<int32_t>(), t.mutable_data<int32_t>() + t.size(), 0);
  return t;
}

bool equal(const tensor& a, const tensor& b) {
  const auto x = a.values<int32_t>(), y = b.values<int32_t>();
  return a.dims() == b.dims() && std::equal(x.begin(), x.end(), y.begin(), y.end());
}

} // namespace

TEST_CASE("shares are as equal as they can be", "[tensor][D7]") {
  CHECK(equal_shares(7, 3) == std::vector<int64_t>{3, 2, 2});
  CHECK(equal_shares(2, 4) == std::vector<int64_t>{1, 1, 0, 0});
}

TEST_CASE("a tensor that is cut along any axis joins again", "[tensor][D7]") {
  const tensor whole = counted({3, 5, 4});
  for (size_t axis = 0; axis < 3; ++axis)
    for (size_t parts = 1; parts < 7; ++parts)
      CHECK(equal(join(cut(whole, axis, equal_shares(whole.dims()[axis], parts)), axis), whole));
  const std::vector<int64_t> sizes{1, 4};
  const auto parts = cut(whole, 1, sizes);
  CHECK(parts[0].values<int32_t>()[4] == 20); // row 1, column 0
  CHECK(parts[1].values<int32_t>()[0] == 4);
}

TEST_CASE("what cannot be cut or joined is refused", "[tensor][D7]") {
  const tensor whole = counted({3, 5});
  CHECK_THROWS_AS(cut(whole, 2, equal_shares(3, 1)), error);
  CHECK_THROWS_AS(cut(whole, 0, equal_shares(4, 2)), error);
  CHECK_THROWS_AS(cut(tensor(dtype::string, {4}), 0, equal_shares(4, 2)), error);
  CHECK_THROWS_AS(join({}, 0), error);
  const std::vector<tensor> unequal{counted({3, 5}), counted({3, 4})};
  CHECK_THROWS_AS(join(unequal, 0), error);
  CHECK(join(unequal, 1).dims() == shape{3, 9});
}
