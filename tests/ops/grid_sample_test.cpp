#include "ops/run_op.hpp"
#include "support/catch.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Contains;

namespace {

attributes sampling(const char* mode, const char* padding = "zeros", bool align_corners = false) {
  return attrs_of(
      {{"mode", std::string(mode)}, {"padding_mode", std::string(padding)}, {"align_corners", int64_t{align_corners}}});
}

/// Samples one channel of 1, 2, 3, 4 at these places, -1 … 1 along it.
std::vector<double> on_line(const attributes& attrs, const std::vector<float>& places) {
  const auto count = static_cast<int64_t>(places.size());
  return elements(run_op("GridSample", 20, attrs, {floats({1, 1, 4}, {1, 2, 3, 4}), floats({1, count, 1}, places)})[0]);
}

} // namespace

TEST_CASE("GridSample at its elements' places is the input", "[ops][grid_sample]") {
  const tensor x = ramp({2, 3, 4, 5});
  for (const bool align_corners : {false, true}) {
    tensor grid(dtype::float32, {2, 4, 5, 2});
    for (int64_t i = 0; i < 40; ++i) {
      const auto place = [&](int64_t at, int64_t size) {
        const auto n = static_cast<float>(size);
        return align_corners ? 2 * static_cast<float>(at) / (n - 1) - 1 : (2 * static_cast<float>(at) + 1) / n - 1;
      };
      grid.mutable_data<float>()[2 * i] = place(i % 5, 5);
      grid.mutable_data<float>()[2 * i + 1] = place(i / 5 % 4, 4);
    }
    for (const char* mode : {"nearest", "linear", "cubic"})
      for (const char* padding : {"zeros", "border", "reflection"}) {
        const auto y = elements(run_op("GridSample", 22, sampling(mode, padding, align_corners), {x, grid})[0]);
        for (size_t i = 0; i < y.size(); ++i)
          REQUIRE(y[i] == Approx(elements(x)[i]).margin(1e-3));
      }
  }
}

TEST_CASE("GridSample interpolates between elements, and rounds halves to even", "[ops][grid_sample]") {
  CHECK(on_line(sampling("linear"), {-0.5f, 0, 0.125f}) == std::vector<double>{1.5, 2.5, 2.75});
  CHECK(on_line(sampling("linear", "zeros", true), {-1, 0, 1}) == std::vector<double>{1, 2.5, 4});
  CHECK(on_line(sampling("nearest"), {-0.5f, 0, 0.5f}) == std::vector<double>{1, 3, 3}); // 0.5, 1.5, 2.5
  CHECK(on_line(sampling("cubic"), {0}) == std::vector<double>{2.5});
}

TEST_CASE("GridSample's padding decides the values outside, whatever the place", "[ops][grid_sample][E5]") {
  const float far = 1e30f, infinity = INFINITY, none = NAN;
  CHECK(on_line(sampling("linear"), {-1.5f, 2, far, -far, infinity, -infinity, none}) == std::vector<double>(7, 0));
  CHECK(on_line(sampling("nearest"), {-1.5f, 2, far, -infinity, none}) == std::vector<double>(5, 0));
  CHECK(on_line(sampling("linear", "border"), {-1.5f, 2, far, infinity, -infinity, none}) ==
        std::vector<double>{1, 4, 4, 4, 1, 1});
  CHECK(on_line(sampling("linear", "reflection"), {-1.25f, 1.25f, 1.5f}) == std::vector<double>{1, 4, 3.5});
  for (const char* mode : {"nearest", "linear", "cubic"})
    for (const char* padding : {"border", "reflection"})
      for (const bool align_corners : {false, true})
        for (const double v : on_line(sampling(mode, padding, align_corners), {-far, far, infinity, none}))
          CHECK((v >= 0.5 && v <= 4.5)); // near some element
  // One element along an axis has no range to be mirrored in.
  const auto one = run_op("GridSample", 20, sampling("linear", "reflection", true),
                          {floats({1, 1, 1}, {7}), floats({1, 2, 1}, {-3, 9})})[0];
  CHECK(elements(one) == std::vector<double>{7, 7});
}

TEST_CASE("GridSample takes three axes, the last first, and other types", "[ops][grid_sample]") {
  const tensor x = ramp({1, 1, 2, 3, 4});
  const tensor grid = floats({1, 1, 1, 1, 3}, {0.75f, 0, -0.5f}); // column 3, row 1, slice 0
  CHECK(elements(run_op("GridSample", 20, sampling("nearest"), {x, grid})[0]) == std::vector<double>{7});
  const tensor bytes = tensor::of<uint8_t>({1, 1, 3}, std::vector<uint8_t>{10, 20, 30});
  const tensor places = floats({1, 2, 1}, {0, 5});
  CHECK(elements(run_op("GridSample", 22, sampling("nearest"), {bytes, places})[0]) == std::vector<double>{20, 0});
}

TEST_CASE("GridSample refuses operands that do not fit", "[ops][grid_sample][E5]") {
  const tensor x = ramp({1, 1, 4, 4});
  const auto refuses = [](const std::vector<tensor>& inputs, const attributes& attrs, const char* text) {
    CHECK_THROWS_WITH(run_op("GridSample", 20, attrs, inputs), Contains(text));
  };
  refuses({x, ramp({1, 2, 2, 3})}, {}, "coordinates of a place");
  refuses({x, ramp({2, 2, 2, 2})}, {}, "the batches");
  refuses({x, ramp({1, 2, 2})}, {}, "the same rank");
  refuses({ramp({1, 1}), ramp({1, 0})}, {}, "3 or more");
  refuses({ramp({1, 1, 1, 1, 1, 1}), ramp({1, 1, 1, 1, 1, 4})}, {}, "spatial axes");
  refuses({x, ramp({1, 2, 2, 2})}, sampling("lanczos"), "'lanczos'");
  refuses({x, ramp({1, 2, 2, 2})}, sampling("linear", "wrap"), "'wrap'");
  refuses({ramp({1, 1, 0, 4}), ramp({1, 2, 2, 2})}, {}, "no elements");
  CHECK(run_op("GridSample", 20, {}, {x, ramp({1, 0, 2, 2})})[0].dims() == shape{1, 1, 0, 2});
}
