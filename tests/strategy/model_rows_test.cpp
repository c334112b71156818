// Requests by rows: which may be cut and joined, and that both give the same results.
#include "strategy/call_model.hpp"
#include "strategy/model_rows.hpp"

#include <numeric>

using namespace troupe;
using namespace troupe::test;

namespace {

/// y = x · w + bias of each row; `scale` is shared by all rows.
model_rows rows_of_model() {
  call_model m;
  const value_id x = m.input("x", {batch, 3}), scale = m.input("scale", {1});
  m.output(m.op("Mul", {m.op("Relu", {x}), scale}, {}, "y"));
  const graph program = inferred(m.g);
  return {program, prove_rows(program)};
}

tensor numbers(int64_t rows, int64_t width, float from = 0) {
  tensor t(dtype::float32, {rows, width});
  std::iota(t.mutable_data<float>(), t.mutable_data<float>() + t.size(), from);
  return t;
}

tensor scalar(float value) {
  tensor t(dtype::float32, {1});
  *t.mutable_data<float>() = value;
  return t;
}

} // namespace

TEST_CASE("Requests are joined if all but their rows is the same", "[strategy][C1]") {
  const model_rows rows = rows_of_model();
  CHECK(rows.symbol() == "batch");
  const auto of = [&](int64_t count, float scale) {
    return rows.measure({{"x", numbers(count, 3)}, {"scale", scalar(scale)}});
  };
  CHECK(of(5, 2).rows == 5);
  CHECK(of(5, 2).divisible);
  CHECK(of(5, 2).key == of(1, 2).key);
  CHECK(of(5, 2).key != of(5, 3).key); // another value for all rows
}

TEST_CASE("Inputs that are not as the model declares them are one piece, for the run to refuse", "[strategy][C1]") {
  const model_rows rows = rows_of_model();
  const tensor x = numbers(5, 3), scale = scalar(2);
  const named_tensors missing{{"x", x}}, other{{"x", x}, {"scale", scale}, {"more", x}},
      none{{"x", numbers(0, 3)}, {"scale", scale}}, flat{{"x", tensor(dtype::float32, shape{})}, {"scale", scale}},
      empty{{"x", tensor()}, {"scale", scale}};
  for (const named_tensors& inputs : {missing, other, none, flat, empty}) {
    CHECK_FALSE(rows.measure(inputs).divisible);
    CHECK(rows.measure(inputs).rows == 1);
  }
  CHECK_FALSE(model_rows("why").measure({{"x", x}, {"scale", scale}}).divisible);
}

TEST_CASE("A request whose sizes contradict a dim's name runs whole: the proof counts on the name", "[strategy][C1]") {
  call_model m;
  const dim n = dim::symbol("n");
  m.output(m.op("Add", {m.input("x", {batch, n}), m.input("y", {batch, n})}, {}, "sum"));
  const graph program = inferred(m.g);
  const model_rows rows(program, prove_rows(program));
  CHECK(rows.measure({{"x", numbers(5, 3)}, {"y", numbers(5, 3)}}).divisible);
  CHECK_FALSE(rows.measure({{"x", numbers(5, 3)}, {"y", numbers(5, 1)}}).divisible);
}

TEST_CASE("Rows that are cut and joined are the same rows", "[strategy][C1]") {
  const model_rows rows = rows_of_model();
  const named_tensors a{{"x", numbers(5, 3)}, {"scale", scalar(2)}}, b{{"x", numbers(2, 3, 100)}, {"scale", scalar(2)}};
  const std::vector<rows_in> parts{{&a, 3, 2}, {&b, 0, 2}, {&a, 0, 1}};
  const named_tensors joined = rows.join_inputs(parts, make_plain_tensor);
  CHECK(joined.at("x").dims() == shape{5, 3});
  const std::vector<float> wanted{9, 10, 11, 12, 13, 14, 100, 101, 102, 103, 104, 105, 0, 1, 2};
  CHECK(std::ranges::equal(joined.at("x").values<float>(), wanted));
  CHECK(joined.at("scale").values<float>()[0] == 2);
  const named_tensors y{{"y", joined.at("x")}};
  const rows_in second{&y, 2, 2};
  CHECK(std::ranges::equal(rows.cut_outputs(second).at("y").values<float>(), b.at("x").values<float>()));
}

TEST_CASE("Outputs are gathered part by part, in any order", "[strategy][C1]") {
  const model_rows rows = rows_of_model();
  const named_tensors first{{"y", numbers(2, 3)}}, second{{"y", numbers(4, 3, 100)}};
  named_tensors all;
  rows.place_outputs(all, 3, 1, {&second, 2, 2}, make_plain_tensor);
  rows.place_outputs(all, 3, 0, {&first, 1, 1}, make_plain_tensor);
  const std::vector<float> wanted{3, 4, 5, 106, 107, 108, 109, 110, 111};
  CHECK(all.at("y").dims() == shape{3, 3});
  CHECK(std::ranges::equal(all.at("y").values<float>(), wanted));
  const named_tensors other{{"y", numbers(1, 4)}};
  CHECK(thrown_by([&] {
          rows.place_outputs(all, 3, 0, {&other, 0, 1}, make_plain_tensor);
        }).code() == errc::invalid_input);
}
