// Which convolutions go by a packed image, on GPUs that are not there.
#include "launch/packed_image.hpp"
#include "ops/evaluate.hpp"
#include "support/catch.hpp"
#include "support/operator_launches.hpp"
#include "support/run_graph.hpp"
#include "tensor/convert.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

using int_list = std::vector<int64_t>;

/// The kernel that a GPU of 132 multiprocessors with matrices takes for a first layer of `images` by 3 × 3 windows.
std::string kernel_of(int64_t images, int64_t stride, layout how, dtype type = dtype::float16) {
  gpu_features gpu{.subgroup_size = 32,
                   .max_group_size = 1024,
                   .shared_bytes = 49152,
                   .float16 = true,
                   .cooperative_matrix = true,
                   .units = 132};
  gpu.max_groups[0] = 1u << 31;
  const attributes attrs = attrs_of({{"strides", int_list{stride, stride}}, {"pads", int_list(4, 1)}});
  const int64_t out = 112 / stride;
  operand weights{.type = type, .dims = {64, 3, 3, 3}};
  weights.constant = weight::from_tensor(tensor(type, {64, 3, 3, 3}));
  operand x{.type = type, .dims = {images, 3, 112, 112}}, y{.type = type, .dims = {images, 64, out, out}};
  x.layout = y.layout = how;
  return testing::onnx_launches("Conv", {attrs, {x, weights}, {y}, gpu}).at(0).name;
}

/// Float16 weights of small integers, which sums of products have exactly.
operand filters_of(const shape& dims) {
  tensor small(dtype::float32, dims), half(dtype::float16, dims);
  for (int64_t i = 0; i < small.size(); ++i)
    small.mutable_data<float>()[i] = static_cast<float>(i % 7 - 3);
  convert(small.view(), half.mutable_ref());
  operand weights{.type = dtype::float16, .dims = dims};
  weights.constant = weight::from_tensor(half);
  return weights;
}

std::vector<float> elements_of(const weight& w) {
  const tensor half = materialise(w);
  tensor made(dtype::float32, half.dims());
  convert(half.view(), made.mutable_ref());
  return values_of(made);
}

/// The image as shaders/pad.comp packs it.
std::vector<float> packed(const packed_image& p, const std::vector<float>& image) {
  std::vector<float> made(p.pad.count);
  for (uint32_t i = 0; i < p.pad.count; ++i) {
    int64_t rest = i, from = 0;
    bool inside = true;
    for (uint32_t axis = 0; axis < p.pad.rank; ++axis) {
      const auto& [size, before, in, step] = p.pad.axes[axis];
      const int64_t at = rest % size - int64_t{before};
      inside = inside && at >= 0 && at < in;
      from += at * step;
      rest /= size;
    }
    made[i] = inside ? image.at(static_cast<size_t>(from)) : 0;
  }
  return made;
}

/// The sum of output pixel [image, y, x] of a filter, whose depths are `depths`, as the kernel by a packed image reads
/// it.
float packed_sum(const packed_image& p, const std::vector<float>& from, std::span<const float> depths, int64_t image,
                 int64_t y, int64_t x) {
  const auto& [d, h, w] = p.call.axes;
  const int64_t row = p.call.channels;
  float sum = 0;
  for (int64_t tap = 0; tap < h.kernel; ++tap)
    for (int64_t i = 0; i < row; ++i) {
      const int64_t line = y * h.stride + tap * h.dilation;
      REQUIRE(line < h.in);
      REQUIRE(x * w.stride < w.in);
      const auto at = static_cast<size_t>(image * p.call.in.image + (line * w.in + x * w.stride) * p.call.in.pixel + i);
      if (!p.half_tail || i < row - 4)
        sum += from.at(at) * depths[static_cast<size_t>(tap * row + i)];
    }
  return sum;
}

/// The same by the definition; the image's channels come last.
float plain_sum(const conv_call& c, const std::vector<float>& image, std::span<const float> filter, int64_t n,
                int64_t y, int64_t x) {
  const auto& [d, h, w] = c.axes;
  float sum = 0;
  for (int64_t channel = 0; channel < c.channels; ++channel)
    for (int64_t i = 0; i < h.kernel; ++i)
      for (int64_t j = 0; j < w.kernel; ++j) {
        const int64_t line = h.start(y) + i * h.dilation, column = w.start(x) + j * w.dilation;
        if (line >= 0 && line < h.in && column >= 0 && column < w.in)
          sum += image[static_cast<size_t>(((n * h.in + line) * w.in + column) * c.channels + channel)] *
                 filter[static_cast<size_t>((channel * h.kernel + i) * w.kernel + j)];
      }
  return sum;
}

} // namespace

TEST_CASE("first layers of many images, by float16 and even steps, are packed for matrices", "[launch]") {
  for (const layout how : {layout::plain, layout::channels_last})
    CHECK(kernel_of(32, 2, how) == "conv_cooperative.packed");
  CHECK(kernel_of(1, 2, layout::channels_last) != "conv_cooperative.packed");
  CHECK(kernel_of(32, 1, layout::channels_last) != "conv_cooperative.packed");
  CHECK(kernel_of(32, 2, layout::channels_last, dtype::float32) != "conv_cooperative.packed");
}

TEST_CASE("a packed image has the windows of the image, row by row", "[launch]") {
  struct {
    shape image, filters; // of the image: batch, channels, height, width
    int_list strides, pads, dilations = {1, 1};
  } const cases[] = {{{2, 3, 18, 27}, {2, 3, 7, 7}, {2, 2}, {3, 3, 3, 3}},
                     {{3, 3, 16, 17}, {2, 3, 3, 3}, {2, 2}, {0, 1, 1, 0}},
                     {{1, 4, 12, 20}, {2, 4, 3, 6}, {1, 4}, {2, 1, 0, 5}, {2, 1}},
                     {{2, 1, 40, 9}, {2, 1, 5, 2}, {3, 2}, {0, 0, 0, 0}}};
  const gpu_features gpu{.float16 = true, .units = 132};
  for (const auto& each : cases) {
    INFO(to_string(each.image));
    const attributes attrs = attrs_of({{"strides", each.strides}, {"pads", each.pads}, {"dilations", each.dilations}});
    shape out{each.image[0], each.filters[0]};
    for (size_t i = 0; i < 2; ++i)
      out.push_back(
          (each.image[2 + i] + each.pads[i] + each.pads[2 + i] - each.dilations[i] * (each.filters[2 + i] - 1) - 1) /
              each.strides[i] +
          1);
    const operand weights = filters_of(each.filters),
                  x{.type = dtype::float16, .dims = each.image, .layout = layout::channels_last},
                  y{.type = dtype::float16, .dims = out, .layout = layout::channels_last};
    const gpu_call call{attrs, {x, weights}, {y}, gpu, way_range::every};
    const conv_call c = parse_convolution(call, {});
    const auto p = packed_image_of(call, c);
    REQUIRE(p);
    CHECK(p->half_tail == (each.filters[3] % 2 == 1));
    std::vector<float> image(static_cast<size_t>(volume(each.image)));
    for (size_t i = 0; i < image.size(); ++i)
      image[i] = static_cast<float>(i * 31 % 11) - 5;
    const std::vector<float> from = packed(*p, image), depths = elements_of(*p->weights),
                             filters = elements_of(*weights.constant);
    for (int64_t i = 0; i < volume(out); ++i) { // image, filter, height, width
      const int64_t column = i % out[3], line = i / out[3] % out[2], n = i / (out[1] * out[2] * out[3]);
      const auto f = static_cast<size_t>(i / (out[2] * out[3]) % out[1]);
      const std::span own = std::span(depths).subspan(f * depths.size() / 2, depths.size() / 2),
                      plain = std::span(filters).subspan(f * filters.size() / 2, filters.size() / 2);
      REQUIRE(packed_sum(*p, from, own, n, line, column) == plain_sum(c, image, plain, n, line, column));
    }
  }
}
