#include "support/catch.hpp"
#include "support/kernel_case.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

attributes modes(const std::string& mode, const std::string& coordinates, const std::string& nearest = "floor") {
  attributes a;
  a.set("mode", mode);
  a.set("coordinate_transformation_mode", coordinates);
  a.set("nearest_mode", nearest);
  return a;
}

kernel_case by_scales(const attributes& attrs, tensor x, const std::vector<float>& scales) {
  return {.op = "Resize",
          .inputs = {std::move(x), tensor(), tensor::of<float>({static_cast<int64_t>(scales.size())}, scales)},
          .attrs = attrs};
}

const char* const coordinate_modes[] = {"half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners",
                                        "half_pixel_symmetric"};

} // namespace

TEST_CASE("GPU resize to the nearest neighbour", "[vulkan]") {
  const std::vector<float> all_scales[] = {
      {1, 1, 2, 2}, {1, 1, 3, 1.5f}, {1, 1, 0.6f, 0.5f}, {1, 1, 1.f / 3, 2.7f}, {2, 1, 1, 2}};
  for (const char* coordinates : coordinate_modes)
    for (const char* nearest : {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"})
      for (const auto& scales : all_scales)
        check_gpu_kernels(by_scales(modes("nearest", coordinates, nearest), random_floats({1, 3, 6, 10}, 1), scales));
  for (dtype type : {dtype::uint8, dtype::int8})
    check_gpu_kernels(
        by_scales(modes("nearest", "asymmetric"), random_integers(type, {1, 2, 5, 7}, 1, 0, 127), {1, 1, 2, 2}));
  check_gpu_kernels(by_scales(modes("nearest", "asymmetric"), random_floats({1, 8, 6, 10}, 1), {1, 1, 2, 2}), true);
}

TEST_CASE("GPU resize by interpolation", "[vulkan][slow]") {
  const std::vector<float> all_scales[] = {{1, 1, 2, 2}, {1, 1, 3, 1.5f}, {1, 1, 0.6f, 0.5f}, {1, 1, 1, 2.7f}};
  for (const char* mode : {"linear", "cubic"})
    for (const char* coordinates : coordinate_modes)
      for (const auto& scales : all_scales) {
        kernel_case c = by_scales(modes(mode, coordinates), random_floats({2, 3, 6, 10}, 1), scales);
        c.atol = 1e-4;
        check_gpu_kernels(c);
      }
  kernel_case c = by_scales(modes("linear", "half_pixel"), random_floats({1, 3, 16, 16}, 2), {1, 1, 2, 2});
  c.atol = 1e-3;
  check_gpu_kernels(c, true);
  check_gpu_kernels(by_scales(modes("linear", "half_pixel"), random_floats({1, 2, 3, 4, 5}, 2), {1, 1, 2, 2, 2}));
}

TEST_CASE("GPU resize with antialias, weights without places outside, regions", "[vulkan]") {
  const std::vector<float> all_scales[] = {{1, 1, 2, 2}, {1, 1, 0.6f, 0.3f}, {1, 2, 1, 1.7f}};
  for (const char* mode : {"linear", "cubic"})
    for (const char* option : {"antialias", "exclude_outside"})
      for (const auto& scales : all_scales)
        for (bool half : {false, true}) {
          attributes attrs = modes(mode, "half_pixel");
          attrs.set(option, int64_t{1});
          kernel_case c = by_scales(attrs, random_floats({2, 3, 7, 10}, 1), scales);
          c.atol = half ? 2e-3 : 1e-4;
          check_gpu_kernels(c, half);
        }
  const float roi[] = {0, 0, 0.2f, -0.3f, 1, 1, 0.8f, 1.3f};
  for (const char* mode : {"linear", "cubic"}) {
    attributes attrs = modes(mode, "tf_crop_and_resize");
    attrs.set("extrapolation_value", 7.5f);
    kernel_case c{.op = "Resize",
                  .inputs = {random_floats({1, 2, 6, 9}, 1), tensor::of<float>({8}, roi), tensor(),
                             tensor::of<int64_t>({4}, std::vector<int64_t>{1, 2, 5, 8})},
                  .attrs = attrs,
                  .atol = 1e-4};
    check_gpu_kernels(c);
  }
}

TEST_CASE("GPU resize to sizes, and Upsample", "[vulkan]") {
  const int64_t sizes[] = {1, 3, 7, 13};
  for (const char* mode : {"nearest", "linear"})
    check_gpu_kernels({.op = "Resize",
                       .inputs = {random_floats({1, 3, 5, 6}, 1), tensor(), tensor(), tensor::of<int64_t>({4}, sizes)},
                       .attrs = modes(mode, "half_pixel", "round_prefer_floor")});
  const float scales[] = {1, 1, 2, 3};
  check_gpu_kernels(
      {.op = "Upsample", .inputs = {random_floats({1, 3, 5, 6}, 1), tensor::of<float>({4}, scales)}, .opset = 9});
}
