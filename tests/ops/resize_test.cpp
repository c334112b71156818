#include "ops/run_op.hpp"
#include "support/catch.hpp"

#include <cmath>

using namespace troupe;
using namespace troupe::testing;

namespace {

tensor scales_of(std::vector<float> scales) {
  return floats({std::ssize(scales)}, scales);
}

} // namespace

TEST_CASE("Resize by tf_half_pixel_for_nn leaves axes of scale 1 as they are", "[ops]") {
  for (const char* nearest : {"ceil", "floor", "round_prefer_ceil"}) {
    const attributes attrs = attrs_of(
        {{"mode", "nearest"}, {"coordinate_transformation_mode", "tf_half_pixel_for_nn"}, {"nearest_mode", nearest}});
    const tensor y = run_op("Resize", 11, attrs, {ramp({1, 2, 2, 1}), floats({0}, {}), scales_of({1, 1, 2, 1})})[0];
    INFO(nearest);
    CHECK(elements(y)[0] < 2); // the first channel
    CHECK(elements(y)[4] >= 2);
  }
}

TEST_CASE("Resize of opset 10 takes the pixel above where it shrinks, else the one below", "[ops]") {
  const auto resized = [](float scale) {
    return elements(run_op("Resize", 10, {}, {ramp({1, 7}), scales_of({1, scale})})[0]);
  };
  CHECK(resized(0.3f) == std::vector<double>{0, 4});
  CHECK(resized(0.5f) == std::vector<double>{0, 2, 4});
  CHECK(resized(0.7f) == std::vector<double>{0, 2, 3, 5});
  CHECK(resized(1.3f) == std::vector<double>{0, 0, 1, 2, 3, 3, 4, 5, 6});
}

TEST_CASE("Resize of float64 interpolates in float64", "[ops]") {
  const attributes attrs = attrs_of({{"mode", "linear"}});
  const tensor x = tensor::of<double>({1, 2}, std::vector<double>{0, 1});
  const tensor y = run_op("Resize", 13, attrs, {x, tensor(), scales_of({1, 3})})[0];
  CHECK(std::abs(elements(y)[2] - 1 / 3.0) < 1e-15);
}
