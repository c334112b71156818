// Which products and convolutions of float32 share depths among slices of a group, on fabricated devices. Results are
// tested on a device.
#include "launch/tiling.hpp"
#include "ops/run_op.hpp"
#include "support/catch.hpp"
#include "support/fabricated_gpu.hpp"
#include "support/operator_launches.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

operand channels_last(shape dims) {
  return {.type = dtype::float32, .dims = std::move(dims), .layout = layout::channels_last};
}

operand constant(shape dims, dtype type = dtype::float32) {
  auto w = std::make_shared<weight>(); // its bytes are not asked for
  w->type = type;
  w->dims = dims;
  return {.type = type, .dims = std::move(dims), .constant = std::move(w)};
}

/// The slices of a launch of a tiled kernel, whose shader has to be the one for them.
uint32_t slices_of(const launch& l) {
  const auto& c = l.constants;
  const uint32_t slices = c.at(0) / (c.at(1) / c.at(4) * (c.at(2) / c.at(5)));
  INFO(l.shader << ' ' << slices);
  CHECK(l.shader.ends_with("_sliced") == (slices > 1));
  return slices;
}

/// The most slices that a product's ways have.
uint32_t slices_of(const gpu_features& gpu, std::array<int64_t, 3> size, dtype type = dtype::float32,
                   way_range ways = way_range::usual) {
  const attributes none;
  const auto [m, n, k] = size;
  uint32_t most = 0;
  for (const launch_list& list :
       onnx_launches("MatMul", {none, {{type, {m, k}}, constant({k, n}, type)}, {{type, {m, n}}}, gpu, ways}))
    if (list.name == "matmul")
      most = std::max(most, slices_of(list.launches.at(0)));
  return most;
}

} // namespace

TEST_CASE("slices share the depths of float32 tiles where these leave a large device waiting", "[launch][slices]") {
  // mobilenet_v2's products on an H100: of 14 × 14, 7 × 7 and 28 × 28 pixels
  const gpu_features gpu = h100_like();
  CHECK(slices_of(gpu, {196, 384, 64}) == 2);
  CHECK(slices_of(gpu, {196, 576, 96}) == 2);
  CHECK(slices_of(gpu, {196, 64, 192}) == 4);
  CHECK(slices_of(gpu, {49, 960, 160}) == 2);
  CHECK(slices_of(gpu, {784, 32, 192}) == 4);
  CHECK(slices_of(gpu, {49, 1280, 320}) == 4);
  CHECK(slices_of(gpu, {196, 96, 576}) == 1);  // splits fill the device
  CHECK(slices_of(gpu, {784, 192, 32}) == 1);  // one step
  CHECK(slices_of(gpu, {12544, 16, 32}) == 1); // tiles do
}

TEST_CASE("small devices and float16 have no slices, unless every way is wanted of float32", "[launch][slices]") {
  gpu_features gpu = h100_like();
  CHECK(slices_of(gpu, {196, 384, 64}, dtype::float16) == 1);
  CHECK(slices_of(gpu, {196, 384, 64}, dtype::float16, way_range::all) == 1);
  gpu.units = gpu_features{}.units; // of a device that does not say how many it has
  CHECK(slices_of(gpu, {196, 384, 64}) == 1);
  CHECK(slices_of(gpu, {196, 384, 64}, dtype::float32, way_range::all) == 4);
  gpu.shared_bytes = 32768;
  CHECK(slices_of(gpu, {196, 384, 64}, dtype::float32, way_range::all) == 2);
}

TEST_CASE("convolutions have slices as products do, those of bytes have none", "[launch][slices]") {
  const gpu_features gpu = h100_like();
  const attributes attrs = attrs_of({{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  const auto x = channels_last({1, 16, 55, 55}), y = channels_last({1, 64, 55, 55});
  const launch_list list = onnx_launches("Conv", {attrs, {x, constant({64, 16, 3, 3})}, {y}, gpu}).at(0);
  CHECK(list.launches.at(0).shader == "conv.f32_sliced");
  CHECK(slices_of(list.launches[0]) == 2);
  // The tiles for bytes.
  for (const tiling& t : list_tilings({196, 384, 64}, tile_family::tiled, false, gpu, way_range::all))
    CHECK(t.slices() == 1);
}
