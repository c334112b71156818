// CropAndResize of com.microsoft (TensorFlow's operator of that name, as ONNX Runtime defines it): regions of images,
// each resized to crop_size.
//
// x is [N, C, H, W], rois [R, 4] as y1, x1, y2, x2 in parts of the image (0: its first element, 1: its last),
// batch_indices [R] the image of each, crop_size two numbers that the host knows; y is [R, C, crop_height, crop_width].
// Elements of a crop lie at equal distances from edge to edge of the region, a single one in its middle. mode takes
// four neighbours (bilinear) or the nearest element, extrapolation_value where a place is outside.
#include "ops/axes.hpp"
#include "ops/expansion.hpp"
#include "ops/infer.hpp"
#include "ops/onnx/regions.hpp"
#include "ops/operand.hpp"

#include <cmath>

namespace troupe {
namespace {

constexpr size_t crop_size_input = 3;

/// Returns whether attribute `mode` asks for four neighbours.
bool crops_bilinearly(const attributes& attrs) {
  return word_of(attrs, "mode", "bilinear", {"bilinear", "nearest"}) == "bilinear";
}

void infer_crop(infer_context& c) {
  crops_bilinearly(c.attrs());
  require_regions(c);
  if (c.type(1) != c.type(0) || c.type(2) != dtype::int32 || c.type(crop_size_input) != dtype::int32)
    fail(errc::invalid_model, "regions of {}, images of {} and a crop size of {}; {}, int32 and int32 are needed",
         to_string(c.type(1)), to_string(c.type(2)), to_string(c.type(crop_size_input)), to_string(c.type(0)));
  const std::vector<dim> size = c.require_known(crop_size_input);
  if (size.size() != 2)
    fail(errc::invalid_model, "the crop size has {} numbers; height and width are needed", size.size());
  for (const dim& d : size)
    if (d.is_constant() && d.constant() < 0)
      fail(errc::invalid_model, "a crop of {} x {} elements", size[0].to_string(), size[1].to_string());
  c.set_output(0, c.type(0), {c.dims(1)[0], c.dims(0)[1], size[0], size[1]});
}

/// Returns where the elements of a crop are along one axis of an image.
template <class C>
std::vector<C> crop_places(C first, C last, int64_t count, int64_t size) {
  const C edge = static_cast<C>(size - 1);
  if (count == 1)
    return {static_cast<C>(0.5 * (first + last) * edge)};
  std::vector<C> places(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    places[static_cast<size_t>(i)] =
        first * edge + static_cast<C>(i) * ((last - first) * edge / static_cast<C>(count - 1));
  if (count > 0)
    places.back() = last * edge; // which the sum may miss by its rounding, and so leave the image
  return places;
}

/// Returns the element of a plane at a place within it.
template <class C>
C cropped(const C* plane, int64_t width, C y, C x, bool bilinear) {
  const auto at = [&](C row, C column) {
    return plane[static_cast<int64_t>(row) * width + static_cast<int64_t>(column)];
  };
  if (!bilinear)
    return at(std::round(y), std::round(x));
  const C top = std::floor(y), left = std::floor(x), bottom = std::ceil(y), right = std::ceil(x);
  const C above = at(top, left) + (at(top, right) - at(top, left)) * (x - left);
  const C below = at(bottom, left) + (at(bottom, right) - at(bottom, left)) * (x - left);
  return above + (below - above) * (y - top);
}

template <class C>
void run_crop(kernel_context& c) {
  const bool bilinear = crops_bilinearly(c.attrs());
  const C outside = c.attrs().real("extrapolation_value", 0);
  const const_view& x = c.input(0);
  const int64_t images = x.dims[0], channels = x.dims[1], height = x.dims[2], width = x.dims[3];
  const int64_t out_height = c.output(0).dims[2], out_width = c.output(0).dims[3];
  const read_as<C> from(x), rois(c.input(1));
  const auto* image_of = c.input(2).as<int32_t>();
  write_as<C> to(c.output(0));
  // NaN is not within either
  const auto within = [](C place, int64_t size) { return place >= 0 && place <= static_cast<C>(size - 1); };
  parallel_for(c.input(2).size(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      if (image_of[r] < 0 || image_of[r] >= images)
        fail(errc::invalid_input, "region {} is of image {}, of which there are {}", r, image_of[r], images);
      const C* roi = rois.data() + 4 * r;
      const std::vector<C> rows = crop_places(roi[0], roi[2], out_height, height),
                           columns = crop_places(roi[1], roi[3], out_width, width);
      for (int64_t ch = 0; ch < channels; ++ch) {
        const C* plane = from.data() + (image_of[r] * channels + ch) * height * width;
        C* out = to.data() + (r * channels + ch) * out_height * out_width;
        for (const C row : rows)
          for (const C column : columns)
            *out++ =
                within(row, height) && within(column, width) ? cropped(plane, width, row, column, bilinear) : outside;
      }
    }
  });
  to.commit();
}

void crop_and_resize(kernel_context& c) {
  require_same(c.input(1).dims[0], c.input(2).dims[0], "regions and their images");
  visit_compute(c.input(0).type, [&]<class T>(type_tag<T>) { run_crop<T>(c); });
}

constexpr auto crop_and_resize_rows = std::to_array<op_def>({
    op_row("CropAndResize", 1, infer_crop, crop_and_resize,
           {.domain = microsoft,
            .inputs = {4, 4},
            .types = types::floats,
            .host_inputs = 1U << crop_size_input,
            .cost = cost_per_output<8>,
            .axes = axes::regions,
            .mixes = "takes regions of any part of"}),
});

} // namespace

extern constinit const op_table contrib_crop_and_resize_ops = crop_and_resize_rows;

} // namespace troupe
