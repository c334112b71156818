// The same for operators that move elements, for the number of rows as a value, and for rows that are picked by their
// numbers.
#include "strategy/call_model.hpp"

using namespace troupe;
using namespace troupe::test;
using m = call_model;

TEST_CASE("Movement carries rows along, or mixes them", "[strategy][C1]") {
  const auto perm = [](std::vector<int64_t> order) { return attrs_of({{"perm", std::move(order)}}); };
  CHECK(axis_after([&](m& b) { return b.op("Transpose", {b.x({batch, 3, 4})}, perm({1, 2, 0})); }) == 2);
  CHECK(axis_after([](m& b) { return b.op("Reshape", {b.x({2, batch, 3, 4}), b.integers({2, -1, 12})}); }) == 1);
  CHECK_THAT(refusal_of([](m& b) {
               return b.op("Reshape", {b.x({batch, 2, 3}), b.integers({2, -1, 3})});
             }),
             Catch::Contains("folds axis 0"));
  CHECK_THAT(refusal_of([](m& b) {
               return b.op("Relu", {b.op("Reshape", {b.x({batch, 2}), b.integers({-1})}, {}, "flat")});
             }),
             Catch::Contains("has rows folded with others into dim 0"));
  // Rows may be folded with the dims after them on the way, as before a product, and unfolded again.
  CHECK(axis_after([](m& b) {
          const dim seq = dim::symbol("seq");
          const value_id flat = b.op("Reshape", {b.x({batch, seq, 4}), b.integers({-1, 4})}),
                         product = b.op("MatMul", {flat, b.weights({4, 6})});
          return b.op("Reshape", {b.op("Relu", {product}), b.known({3}, {batch, seq, 6})});
        }) == 0);
  CHECK_THAT(refusal_of([](m& b) {
               const value_id flat = b.op("Reshape", {b.x({batch, 3, 4}), b.integers({-1, 4})});
               return b.op("Softmax", {flat}, at(0));
             }),
             Catch::Contains("normalises over axis 0"));
  CHECK(axis_after([](m& b) { return b.op("Concat", {b.x({batch, 2}), b.x({batch, 3})}, at(1)); }) == 0);
  CHECK_THAT(refusal_of([](m& b) {
               return b.op("Concat", {b.x({batch, 2}), b.weights({1, 2})}, at(0));
             }),
             Catch::Contains("joins along axis 0"));
  const auto slice = [](m& b, int64_t from, int64_t to, int64_t axis, int64_t step) {
    return b.op("Slice",
                {b.x({batch, 4}), b.integers({from}), b.integers({to}), b.integers({axis}), b.integers({step})});
  };
  CHECK(axis_after([&](m& b) { return slice(b, 0, INT64_MAX, 0, 1); }) == 0);
  CHECK(axis_after([&](m& b) { return slice(b, 3, 0, 1, -1); }) == 0);
  CHECK_THAT(refusal_of([&](m& b) { return slice(b, -1, INT64_MIN, 0, -1); }),
             Catch::Contains("by their position along"));
  CHECK_THAT(refusal_of([&](m& b) { return slice(b, 0, 1, 0, 1); }), Catch::Contains("by their position along"));
}

TEST_CASE("Rows pick and are picked from by indices", "[strategy][C1]") {
  CHECK(axis_after([](m& b) { return b.op("Gather", {b.weights({9, 4}), b.x({3, batch}, dtype::int64)}); }) == 1);
  CHECK(axis_after([](m& b) { return b.op("Gather", {b.x({5, batch}), b.integers({0, 1, 2})}); }) == 1);
  CHECK_THAT(refusal_of([](m& b) {
               return b.op("Gather", {b.x({batch, 5}), b.integers({0})});
             }),
             Catch::Contains("by their position along"));
  CHECK_THAT(refusal_of([](m& b) {
               return b.op("Gather", {b.x({batch, 5}), b.x({batch}, dtype::int64)}, at(1));
             }),
             Catch::Contains("each row with all others"));
  CHECK(axis_after([](m& b) {
          return b.op("GatherElements", {b.x({batch, 5}), b.x({batch, 2}, dtype::int64)}, at(1));
        }) == 0);
  CHECK_THAT(refusal_of([](m& b) {
               return b.op("GatherElements", {b.x({batch, 5}), b.x({batch, 5}, dtype::int64)}, at(0));
             }),
             Catch::Contains("by their position along"));
  const auto nd = [](int64_t batches) { return attrs_of({{"batch_dims", batches}}); };
  CHECK(axis_after([&](m& b) {
          return b.op("GatherND", {b.x({batch, 5}), b.x({batch, 1}, dtype::int64)}, nd(1));
        }) == 0);
  CHECK_THAT(refusal_of([&](m& b) {
               return b.op("GatherND", {b.x({batch, 5}), b.x({batch, 1}, dtype::int64)}, nd(0));
             }),
             Catch::Contains("by their position along"));
  const auto scatter = [](int64_t axis) {
    return [axis](m& b) {
      return b.op("ScatterElements", {b.x({batch, 5}), b.x({batch, 2}, dtype::int64), b.x({batch, 2})}, at(axis));
    };
  };
  CHECK(axis_after(scatter(1)) == 0);
  CHECK_THAT(refusal_of(scatter(0)), Catch::Contains("replaces elements along axis 0"));
}

TEST_CASE("Padding, tiling and triangles stay within rows", "[strategy][C1]") {
  CHECK(axis_after([](m& b) { return b.op("Pad", {b.x({batch, 4}), b.integers({0, 1, 0, 2})}); }) == 0);
  CHECK_THAT(refusal_of([](m& b) {
               return b.op("Pad", {b.x({batch, 4}), b.integers({1, 0, -1, 0})});
             }),
             Catch::Contains("pads axis 0"));
  CHECK_THAT(refusal_of([](m& b) {
               return b.op("Tile", {b.x({batch, 4}), b.integers({2, 1})});
             }),
             Catch::Contains("Tile"));
  CHECK_THAT(refusal_of([](m& b) { return b.op("Trilu", {b.x({batch, 4})}); }), Catch::Contains("Trilu"));
  CHECK_THAT(refusal_of([](m& b) { return b.many("Unique", {b.x({batch})}, 1); }), Catch::Contains("Unique"));
}

TEST_CASE("The number of rows may give a shape, but not be computed with", "[strategy][C1]") {
  const auto sized = [](m& b, const char* op, bool of_shape) {
    const value_id x = b.x({batch, 4}), shape = b.op("Shape", {x});
    return b.op(op,
                {x, of_shape ? b.op("ConstantOfShape", {shape})
                             : b.op("Cast", {b.op("Gather", {shape, b.integer(0)})}, attrs_of({{"to", int64_t{1}}}))});
  };
  CHECK(axis_after([&](m& b) { return sized(b, "Add", true); }) == 0);
  CHECK_THAT(refusal_of([&](m& b) { return sized(b, "Div", false); }),
             Catch::Contains("depends on the number of rows"));
  CHECK_THAT(refusal_of([](m& b) { return b.op("Shape", {b.x({batch, 4})}); }), Catch::Contains("output"));
  // The bound is the number of rows, and the dim does not show it.
  CHECK_THAT(
      refusal_of([](m& b) {
        const value_id x = b.x({batch, dim::symbol("batch2")}), n = b.op("Shape", {x}, attrs_of({{"end", int64_t{1}}}));
        return b.op("Slice", {x, n, b.op("Add", {n, b.integers({1})}), b.integers({1})});
      }),
      Catch::Contains("Slice"));
}

TEST_CASE("Rows may be picked by their own numbers", "[strategy][C1]") {
  const dim seq = dim::symbol("seq");
  CHECK(axis_after([](m& b) {
          const value_id x = b.x({batch, 4});
          return b.op("Gather", {x, b.op("Range", {b.integer(0), b.known({}, {batch}), b.integer(1)})});
        }) == 0);
  const auto index = [](const dim& step, const dim& columns) {
    return [=](m& b) {
      const value_id mask = b.x({batch, dim::symbol("seq")}),
                     flat = b.op("Reshape", {mask, b.integers({-1})}, {}, "flat");
      const auto range = [&](const dim& end) {
        return b.op("Range", {b.integer(0), b.known({}, {end}), b.integer(1)});
      };
      const value_id row = b.op("Unsqueeze", {range(batch), b.integers({1})});
      return b.op("Gather", {flat, b.op("Add", {b.op("Mul", {row, b.known({1}, {step})}), range(columns)})});
    };
  };
  CHECK(axis_after(index(seq, seq)) == 0);
  CHECK_THAT(refusal_of(index(seq + 1, seq)), Catch::Contains("counts the elements"));
  CHECK_THAT(refusal_of(index(seq, seq + 1)), Catch::Contains("counts the elements"));
  CHECK_THAT(
      refusal_of([](m& b) {
        const value_id x = b.x({batch}, dtype::int64);
        return b.op("Add", {x, b.op("Range", {b.integer(0), b.known({}, {batch}), b.integer(1)}, {}, "numbers")});
      }),
      Catch::Contains("Range 'Range_numbers' counts the elements"));
}
