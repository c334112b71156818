#include "ops/run_op.hpp"
#include "support/catch.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Contains;

namespace {

/// A tensor of these dims, all one value.
tensor filled_with(shape dims, float value) {
  tensor t(dtype::float32, std::move(dims));
  std::fill_n(t.mutable_data<float>(), t.size(), value);
  return t;
}

std::vector<double> deformed(const std::vector<tensor>& inputs, const attributes& attrs) {
  return elements(run_op("DeformConv", 19, attrs, inputs)[0]);
}

} // namespace

TEST_CASE("DeformConv without offsets is Conv", "[ops][deform_conv]") {
  for (const int64_t stride : {1, 2})
    for (const int64_t dilation : {1, 2})
      for (const int64_t group : {1, 2}) {
        const auto attrs = attrs_of({{"strides", int_list{stride, 1}},
                                     {"dilations", int_list{1, dilation}},
                                     {"pads", int_list{1, 0, 2, 1}},
                                     {"group", group},
                                     {"offset_group", int64_t{2}}});
        const tensor x = ramp({2, 4, 6, 7}, 0.25f), w = ramp({6, 4 / group, 3, 2}, 0.5f), b = ramp({6});
        const tensor plain = run_op("Conv", 11, attrs, {x, w, b})[0];
        const shape& out = plain.dims();
        const tensor offset = filled_with({2, 2 * 6 * 2, out[2], out[3]}, 0),
                     mask = filled_with({2, 2 * 6, out[2], out[3]}, 1);
        CHECK(deformed({x, w, offset, b}, attrs) == elements(plain));
        CHECK(deformed({x, w, offset, b, mask}, attrs) == elements(plain));
      }
}

TEST_CASE("DeformConv's offsets move taps, its mask weighs them", "[ops][deform_conv]") {
  const tensor x = ramp({1, 1, 3, 4}), w = floats({1, 1, 1, 1}, {1}), b = floats({1}, {100});
  const auto at_offsets = [&](float row, float column) {
    tensor offset(dtype::float32, {1, 2, 3, 4});
    std::fill_n(offset.mutable_data<float>(), 12, row);
    std::fill_n(offset.mutable_data<float>() + 12, 12, column);
    return deformed({x, w, offset}, {});
  };
  CHECK(at_offsets(1, 0) == std::vector<double>{4, 5, 6, 7, 8, 9, 10, 11, 0, 0, 0, 0});
  CHECK(at_offsets(0, -1) == std::vector<double>{0, 0, 1, 2, 0, 4, 5, 6, 0, 8, 9, 10});
  CHECK(at_offsets(0.5f, 0.5f)[0] == 2.5);
  CHECK(at_offsets(-0.5f, 0)[1] == 0.5); // half outside
  for (const float nowhere : {1e30f, -1e30f, float(INFINITY), float(NAN)})
    CHECK(at_offsets(nowhere, 0) == std::vector<double>(12, 0));
  const tensor offset = filled_with({1, 2, 3, 4}, 0);
  CHECK(deformed({x, w, offset, b, filled_with({1, 1, 3, 4}, 0)}, {}) == std::vector<double>(12, 100));
  CHECK(deformed({x, w, offset, {}, filled_with({1, 1, 3, 4}, 0.5f)}, {})[11] == 5.5);
}

TEST_CASE("DeformConv gives each offset group its own offsets", "[ops][deform_conv]") {
  const tensor x = ramp({1, 2, 1, 3}), w = floats({1, 2, 1, 1}, {1, 1});
  tensor offset = filled_with({1, 4, 1, 3}, 0);
  std::fill_n(offset.mutable_data<float>() + 9, 3, 1.f); // the second channel's columns
  CHECK(deformed({x, w, offset}, attrs_of({{"offset_group", int64_t{2}}})) == std::vector<double>{0 + 4, 1 + 5, 2 + 0});
}

TEST_CASE("DeformConv refuses operands that do not fit", "[ops][deform_conv][E5]") {
  const tensor x = ramp({1, 2, 3, 3}), w = ramp({1, 2, 2, 2}), offset = ramp({1, 8, 2, 2});
  const auto refuses = [](const std::vector<tensor>& inputs, const attributes& attrs, const char* text) {
    CHECK_THROWS_WITH(run_op("DeformConv", 22, attrs, inputs), Contains(text));
  };
  refuses({x, w, ramp({1, 4, 2, 2})}, {}, "offsets");
  refuses({x, w, ramp({1, 8, 3, 2})}, {}, "offsets");
  refuses({x, w, offset, ramp({2})}, {}, "bias");
  refuses({x, w, offset, {}, ramp({1, 5, 2, 2})}, {}, "mask");
  refuses({x, w, offset}, attrs_of({{"group", int64_t{3}}}), "3 groups");
  refuses({x, w, offset}, attrs_of({{"offset_group", int64_t{0}}}), "0 groups");
  refuses({x, ramp({1, 1, 2, 2}), offset}, {}, "channels");
  refuses({ramp({1, 2, 3}), ramp({1, 2, 2}), ramp({1, 4, 2})}, {}, "images are needed");
}
