#include "strategy/row_tensors.hpp"
#include "support/catch.hpp"
#include "support/run_graph.hpp"
#include "support/thrown.hpp"

using namespace troupe;
using namespace troupe::test;

TEST_CASE("Rows along axis 0 are the tensor's own bytes", "[strategy][C1]") {
  tensor part;
  {
    const tensor whole = floats({3, 2}, {1, 2, 3, 4, 5, 6});
    part = rows_of(whole, 0, 1, 2);
    CHECK(part.data<float>() == whole.data<float>() + 2);
    CHECK(rows_of(whole, 0, 0, 3).data() == whole.data());
  }
  CHECK(part.dims() == shape{2, 2});
  CHECK(values_of(part) == std::vector<float>{3, 4, 5, 6}); // it keeps the bytes alive
}

TEST_CASE("Rows of any axis are cut and joined again", "[strategy][C1]") {
  const tensor whole = random_tensor({3, 5, 4}, 1);
  for (const size_t axis : {0, 1, 2}) {
    const int64_t rows = whole.dims()[axis];
    const std::vector<tensor> parts{rows_of(whole, axis, 0, 2), rows_of(whole, axis, 2, 0),
                                    rows_of(whole, axis, 2, rows - 2)};
    CHECK(parts[0].dims()[axis] == 2);
    const tensor joined = join_rows(parts, axis);
    CHECK(joined.dims() == whole.dims());
    CHECK(values_of(joined) == values_of(whole));
  }
  CHECK(values_of(rows_of(floats({2, 3}, {1, 2, 3, 4, 5, 6}), 1, 1, 1)) == std::vector<float>{2, 5});
  const tensor one = rows_of(whole, 0, 1, 1);
  CHECK(join_rows(std::vector{one}, 0).data() == one.data());
}

TEST_CASE("Rows of strings are cut and joined", "[strategy][C1]") {
  const std::vector<std::string> texts{"a", "b", "c", "d", "e", "f"};
  const tensor whole = tensor::of<std::string>({2, 3}, texts);
  CHECK(*rows_of(whole, 0, 1, 1).data<std::string>() == "d");
  const tensor joined = join_rows(std::vector{rows_of(whole, 1, 2, 1), rows_of(whole, 1, 0, 2)}, 1);
  CHECK(std::vector<std::string>(joined.values<std::string>().begin(), joined.values<std::string>().end()) ==
        std::vector<std::string>{"c", "a", "b", "f", "d", "e"});
}

TEST_CASE("Rows that are not there, and parts that do not fit, are refused", "[strategy][C1]") {
  const tensor t = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  CHECK(thrown_by([&] { rows_of(t, 2, 0, 1); }).code() == errc::invalid_input);
  CHECK(thrown_by([&] { rows_of(t, 0, 1, 2); }).code() == errc::invalid_input);
  CHECK(thrown_by([&] { rows_of(t, 0, -1, 1); }).code() == errc::invalid_input);
  CHECK(thrown_by([&] { rows_of(t, 0, INT64_MAX, 1); }).code() == errc::invalid_input);
  CHECK(thrown_by([&] { join_rows({}, 0); }).code() == errc::invalid_input);
  CHECK(thrown_by([&] { join_rows(std::vector{t, floats({2, 2}, {1, 2, 3, 4})}, 0); }).code() == errc::invalid_input);
  CHECK(thrown_by([&] { join_rows(std::vector{t, tensor(dtype::int32, {2, 3})}, 0); }).code() == errc::invalid_input);
  CHECK(thrown_by([&] { rows_of(tensor(dtype::int4, {2, 3}), 0, 1, 1); }).code() == errc::unsupported);
}
