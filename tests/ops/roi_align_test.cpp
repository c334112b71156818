#include "ops/run_op.hpp"
#include "support/catch.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Contains;

namespace {

attributes bins(int64_t height, int64_t width, int64_t ratio = 0, const char* mode = "avg", float scale = 1) {
  return attrs_of({{"output_height", height},
                   {"output_width", width},
                   {"sampling_ratio", ratio},
                   {"mode", std::string(mode)},
                   {"spatial_scale", scale}});
}

std::vector<double> aligned(const tensor& x, const std::vector<float>& roi, const attributes& attrs,
                            int64_t opset = 16) {
  return elements(run_op("RoiAlign", opset, attrs, {x, floats({1, 4}, roi), longs({0})})[0]);
}

} // namespace

TEST_CASE("RoiAlign's bins are means of the elements that they cover", "[ops][roi_align]") {
  const tensor x = ramp({1, 1, 4, 4}); // linear, so that a mean of samples is the value in the middle
  CHECK(aligned(x, {0, 0, 4, 4}, bins(4, 4, 1)) == elements(x));
  CHECK(aligned(x, {0, 0, 4, 4}, bins(2, 2)) == std::vector<double>{2.5, 4.5, 10.5, 12.5});
  CHECK(aligned(x, {0, 0, 8, 8}, bins(2, 2, 0, "avg", 0.5f)) == std::vector<double>{2.5, 4.5, 10.5, 12.5});
  CHECK(aligned(x, {1, 1, 2, 2}, bins(1, 1, 3))[0] == Approx(5));
}

TEST_CASE("RoiAlign before opset 16 does not shift by half, and takes one element at least", "[ops][roi_align]") {
  const tensor x = ramp({1, 1, 4, 4});
  CHECK(aligned(x, {1, 1, 3, 3}, bins(1, 1, 1), 10) == std::vector<double>{10});
  CHECK(aligned(x, {1, 1, 1, 1}, bins(1, 1, 1), 10) == std::vector<double>{7.5}); // from 1 to 2
}

TEST_CASE("RoiAlign takes the image that a region names, and the largest if asked", "[ops][roi_align]") {
  const tensor x = ramp({3, 2, 2, 2}), rois = floats({2, 4}, {0, 0, 2, 2, 0, 0, 2, 2});
  const tensor y = run_op("RoiAlign", 16, bins(1, 1, 1), {x, rois, longs({2, 0})})[0];
  CHECK(y.dims() == shape{2, 2, 1, 1});
  CHECK(elements(y) == std::vector<double>{17.5, 21.5, 1.5, 5.5});
  CHECK(aligned(ramp({1, 1, 4, 4}), {0, 0, 4, 4}, bins(1, 1, 4, "max")) == std::vector<double>{15});
}

TEST_CASE("RoiAlign outside of the image, and of hostile regions", "[ops][roi_align][E5]") {
  const tensor x = ramp({1, 1, 4, 4});
  const float none = NAN, infinity = INFINITY;
  CHECK(aligned(x, {10, 10, 12, 12}, bins(1, 1, 2)) == std::vector<double>{0});
  CHECK(aligned(x, {none, 0, none, 4}, bins(1, 1, 2)) == std::vector<double>{0});
  CHECK(aligned(x, {0, 0, infinity, 4}, bins(1, 1, 2)) == std::vector<double>{0});
  CHECK_THROWS_WITH(aligned(x, {0, 0, 1e30f, 4}, bins(1, 1)), Contains("samples a bin; state 'sampling_ratio'"));
  CHECK_THROWS_WITH(aligned(x, {none, 0, 1, 4}, bins(1, 1)), Contains("samples a bin"));
  const auto refuses = [&](const std::vector<tensor>& inputs, const attributes& attrs, const char* text) {
    CHECK_THROWS_WITH(run_op("RoiAlign", 16, attrs, inputs), Contains(text));
  };
  const tensor roi = floats({1, 4}, {0, 0, 1, 1});
  refuses({x, roi, longs({1})}, {}, "region 0 is of image 1, of which there are 1");
  refuses({x, roi, longs({-1})}, {}, "of image -1");
  refuses({x, roi, longs({0, 0})}, {}, "regions and their images");
  refuses({x, ramp({1, 5}), longs({0})}, {}, "coordinates of a region");
  refuses({x, roi, longs({0})}, bins(0, 1), "not positive");
  refuses({x, roi, longs({0})}, bins(1, 1, -1), "sampling_ratio");
  refuses({x, roi, longs({0})}, bins(1, 1, 1, "median"), "'median'");
  refuses({ramp({1, 1, 0, 4}), roi, longs({0})}, {}, "no elements");
  CHECK(run_op("RoiAlign", 16, {}, {x, tensor(dtype::float32, {0, 4}), tensor(dtype::int64, {0})})[0].dims() ==
        shape{0, 1, 1, 1});
}
