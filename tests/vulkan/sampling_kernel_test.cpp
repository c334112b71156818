#include "support/catch.hpp"
#include "support/kernel_case.hpp"

#include <limits>

using namespace troupe;
using namespace troupe::test;

namespace {

tensor integers(shape dims, const std::vector<int64_t>& values) {
  return tensor::of<int64_t>(std::move(dims), values);
}

} // namespace

TEST_CASE("GPU GridSample: modes, paddings, one to three axes", "[vulkan]") {
  for (const char* mode : {"nearest", "linear", "cubic"})
    for (const char* padding : {"zeros", "border", "reflection"})
      for (int64_t align : {0, 1})
        for (const auto& [x, grid] : {std::pair<shape, shape>{{2, 3, 5, 7}, {2, 4, 6, 2}},
                                      {{1, 2, 9}, {1, 20, 1}},
                                      {{1, 2, 3, 4, 5}, {1, 2, 3, 2, 3}},
                                      {{1, 0, 3, 3}, {1, 2, 2, 2}},
                                      {{1, 1, 1, 1}, {1, 3, 3, 2}}}) {
          attributes attrs;
          attrs.set("mode", std::string(mode));
          attrs.set("padding_mode", std::string(padding));
          attrs.set("align_corners", align);
          tensor places = random_floats(grid, 2, -2.3f, 2.3f);
          places.mutable_data<float>()[1] = std::numeric_limits<float>::quiet_NaN();
          check_gpu_kernels(
              {.op = "GridSample", .inputs = {random_floats(x, 1), places}, .attrs = attrs, .opset = 20, .atol = 1e-4});
        }
}

TEST_CASE("GPU RoiAlign: means and maxima, coordinates, samples", "[vulkan]") {
  const float rois[] = {0, 0, 9, 9, 2.5f, 1, 4, 30, -3, -2, 5, 6, 7, 7, 7, 7, 8, 9, 3, 2};
  for (const char* mode : {"avg", "max"})
    for (const char* coordinates : {"half_pixel", "output_half_pixel"})
      for (int64_t ratio : {0, 3}) {
        attributes attrs;
        attrs.set("mode", std::string(mode));
        attrs.set("coordinate_transformation_mode", std::string(coordinates));
        attrs.set("sampling_ratio", ratio);
        attrs.set("output_height", int64_t{3});
        attrs.set("output_width", int64_t{2});
        attrs.set("spatial_scale", 0.7f);
        check_gpu_kernels({.op = "RoiAlign",
                           .inputs = {random_floats({2, 3, 10, 12}, 1), tensor::of<float>({5, 4}, rois),
                                      integers({5}, {0, 1, 1, 0, 1})},
                           .attrs = attrs,
                           .atol = 1e-4});
      }
  attributes old;
  old.set("output_height", int64_t{2});
  check_gpu_kernels(
      {.op = "RoiAlign",
       .inputs = {random_floats({2, 3, 10, 12}, 1), tensor::of<float>({5, 4}, rois), integers({5}, {0, 1, 1, 0, 1})},
       .attrs = old,
       .opset = 10});
}

TEST_CASE("GPU DeformConv: groups, bias, mask, strides", "[vulkan]") {
  for (bool extras : {false, true}) {
    attributes attrs;
    attrs.set("group", int64_t{extras ? 2 : 1});
    attrs.set("offset_group", int64_t{2});
    attrs.set("strides", std::vector<int64_t>{2, 1});
    attrs.set("dilations", std::vector<int64_t>{1, 2});
    attrs.set("pads", std::vector<int64_t>{1, 0, 1, 2});
    kernel_case c{.op = "DeformConv",
                  .inputs = {random_floats({2, 4, 7, 9}, 1), random_floats({6, extras ? 2 : 4, 3, 2}, 2),
                             random_floats({2, 24, 4, 9}, 3, -3, 3)},
                  .attrs = attrs,
                  .atol = 1e-4};
    if (extras) {
      c.inputs.push_back(random_floats({6}, 4));
      c.inputs.push_back(random_floats({2, 12, 4, 9}, 5));
    }
    c.inputs[2].mutable_data<float>()[3] = std::numeric_limits<float>::quiet_NaN();
    check_gpu_kernels(c);
  }
}

TEST_CASE("GPU Col2Im adds columns up", "[vulkan]") {
  for (dtype type : {dtype::float32, dtype::float64, dtype::int64, dtype::uint8}) {
    attributes attrs;
    attrs.set("strides", std::vector<int64_t>{2, 1});
    attrs.set("dilations", std::vector<int64_t>{1, 2});
    attrs.set("pads", std::vector<int64_t>{1, 0, 0, 1});
    const shape dims{2, 3 * 6, 15}; // positions: 3 · 5
    check_gpu_kernels(
        {.op = "Col2Im",
         .inputs = {type == dtype::float32 || type == dtype::float64 ? to_type(random_floats(dims, 1), type)
                                                                     : random_integers(type, dims, 1, 0, 9),
                    integers({2}, {6, 6}), integers({2}, {3, 2})},
         .attrs = attrs});
  }
  check_gpu_kernels(
      {.op = "Col2Im", .inputs = {random_floats({1, 10, 6}, 1), integers({1}, {10}), integers({1}, {5})}});
}

TEST_CASE("GPU MaxUnpool puts elements back", "[vulkan]") {
  attributes attrs;
  attrs.set("kernel_shape", std::vector<int64_t>{2, 2});
  attrs.set("strides", std::vector<int64_t>{2, 2});
  std::vector<int64_t> places;
  for (int64_t i = 0; i < 2 * 3 * 2 * 3; ++i)
    places.push_back(i * 4 + i % 4);
  kernel_case c{
      .op = "MaxUnpool", .inputs = {random_floats({2, 3, 2, 3}, 1), integers({2, 3, 2, 3}, places)}, .attrs = attrs};
  check_gpu_kernels(c);
  check_gpu_kernels(c, true);
  c.inputs.push_back(integers({4}, {2, 3, 5, 7}));
  check_gpu_kernels(c);
}
