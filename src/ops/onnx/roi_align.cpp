// RoiAlign (He, Gkioxari, Dollár, Girshick, "Mask R-CNN", ICCV 2017): each region of an image, divided into bins, of
// which each becomes one element.
//
// x is [N, C, H, W], rois [R, 4] as x1, y1, x2, y2, batch_indices [R] the image of each, y [R, C, output_height,
// output_width]. A bin is the mean (avg) or the largest (max) of samples between elements; max takes the largest of
// each sample's four weighted neighbours, as ONNX's own cases do. Until opset 15 coordinates are those of
// output_half_pixel: not shifted, and a region is at least one element wide.
//
// MaxRoiPool (Girshick, "Fast R-CNN", ICCV 2015): rois [R, 5] as image, x1, y1, x2, y2. A region is of whole elements,
// both ends within, and so is a bin, the largest of whose elements becomes one; 0 where it has none.
#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/infer.hpp"
#include "ops/onnx/regions.hpp"
#include "ops/operand.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace troupe {
namespace {

/// Samples of one bin along one axis, at most: a region as large as a file can say must not take for ever.
constexpr int64_t most_samples = 512;

struct roi_options {
  bool is_max, half_pixel;
  int64_t height, width, ratio;
  double scale;
};

roi_options parse_roi_options(const attributes& attrs, bool half_pixel_by_default) {
  const std::string mode = word_of(attrs, "mode", "avg", {"avg", "max"});
  const std::string coordinates =
      word_of(attrs, "coordinate_transformation_mode", half_pixel_by_default ? "half_pixel" : "output_half_pixel",
              {"half_pixel", "output_half_pixel"});
  const roi_options o{mode == "max",
                      coordinates == "half_pixel",
                      attrs.integer("output_height", 1),
                      attrs.integer("output_width", 1),
                      attrs.integer("sampling_ratio", 0),
                      attrs.real("spatial_scale", 1)};
  if (o.height < 1 || o.width < 1)
    fail(errc::invalid_model, "attributes 'output_height' and 'output_width' are {} and {}, not positive", o.height,
         o.width);
  if (o.ratio < 0 || o.ratio > most_samples)
    fail(errc::invalid_model, "attribute 'sampling_ratio' is {}; it may be 0 to {}", o.ratio, most_samples);
  return o;
}

template <bool HalfPixel>
void infer_roi_align(infer_context& c) {
  const roi_options o = parse_roi_options(c.attrs(), HalfPixel);
  require_regions(c);
  if (c.type(1) != c.type(0) || c.type(2) != dtype::int64)
    fail(errc::invalid_model, "regions of {} and images of {}; {} and int64 are needed", to_string(c.type(1)),
         to_string(c.type(2)), to_string(c.type(0)));
  c.set_output(0, c.type(0), {c.dims(1)[0], c.dims(0)[1], o.height, o.width});
}

/// One sample: four neighbours in a plane, and how much each counts.
template <class C>
struct roi_sample {
  std::array<int64_t, 4> at{};
  std::array<C, 4> weight{};
};

/// Returns the sample at a place; outside the image all its weights are zero.
template <class C>
roi_sample<C> sample_at(C y, C x, int64_t height, int64_t width) {
  if (!(y >= -1 && y <= static_cast<C>(height) && x >= -1 && x <= static_cast<C>(width)))
    return {};
  const auto split = [](C v, int64_t size) {
    v = std::max(v, C(0));
    const auto low = std::min(static_cast<int64_t>(v), size - 1), high = std::min(low + 1, size - 1);
    return std::tuple(low, high, high == low ? C(0) : v - static_cast<C>(low));
  };
  const auto [y0, y1, dy] = split(y, height);
  const auto [x0, x1, dx] = split(x, width);
  return {{y0 * width + x0, y0 * width + x1, y1 * width + x0, y1 * width + x1},
          {(1 - dy) * (1 - dx), (1 - dy) * dx, dy * (1 - dx), dy * dx}};
}

/// The bins of one region along one axis.
template <class C>
struct roi_axis {
  C begin, bin;
  int64_t samples; // of a bin

  roi_axis(C first, C last, int64_t bins, const roi_options& o) {
    const C shift = o.half_pixel ? C(0.5) : C(0), scale = static_cast<C>(o.scale);
    begin = first * scale - shift;
    C extent = last * scale - shift - begin;
    if (!o.half_pixel)
      extent = std::max(extent, C(1));
    bin = extent / static_cast<C>(bins);
    const C wanted = o.ratio > 0 ? static_cast<C>(o.ratio) : std::ceil(bin);
    if (!(wanted <= static_cast<C>(most_samples)))
      fail(errc::invalid_input, "a region from {} to {} needs more than {} samples a bin; state 'sampling_ratio'",
           first, last, most_samples);
    samples = std::max<int64_t>(0, static_cast<int64_t>(wanted));
  }

  C place(int64_t b, int64_t s) const {
    return begin + static_cast<C>(b) * bin + (static_cast<C>(s) + C(0.5)) * bin / static_cast<C>(samples);
  }
};

template <class C>
C pooled(const C* plane, std::span<const roi_sample<C>> samples, bool is_max) {
  C result = 0;
  for (size_t s = 0; s < samples.size(); ++s) {
    const auto& [at, weight] = samples[s];
    std::array<C, 4> part{};
    for (size_t i = 0; i < 4; ++i)
      part[i] = weight[i] * plane[at[i]];
    if (is_max) {
      const C most = *std::max_element(part.begin(), part.end());
      result = s == 0 ? most : std::max(result, most);
    } else {
      result += part[0] + part[1] + part[2] + part[3];
    }
  }
  return is_max ? result : result / static_cast<C>(std::max<size_t>(1, samples.size()));
}

template <class C>
void run_roi_align(kernel_context& c, const roi_options& o) {
  const const_view& x = c.input(0);
  const int64_t images = x.dims[0], channels = x.dims[1], height = x.dims[2], width = x.dims[3];
  const read_as<C> from(x), rois(c.input(1));
  const std::vector<int64_t> image_of = to_int64(c.input(2));
  write_as<C> y(c.output(0));
  if (height * width == 0 && c.output(0).size() > 0)
    fail(errc::invalid_input, "an input of shape {} has no elements to pool", to_string(x.dims));
  parallel_for(std::ssize(image_of), 1, [&](int64_t begin, int64_t end) {
    std::vector<roi_sample<C>> samples;
    for (int64_t r = begin; r < end; ++r) {
      const int64_t image = image_of[static_cast<size_t>(r)];
      if (image < 0 || image >= images)
        fail(errc::invalid_input, "region {} is of image {}, of which there are {}", r, image, images);
      const roi_axis<C> rows(rois[4 * r + 1], rois[4 * r + 3], o.height, o),
          columns(rois[4 * r], rois[4 * r + 2], o.width, o);
      for (int64_t bin = 0; bin < o.height * o.width; ++bin) {
        samples.clear();
        for (int64_t i = 0; i < rows.samples; ++i)
          for (int64_t j = 0; j < columns.samples; ++j)
            samples.push_back(sample_at(rows.place(bin / o.width, i), columns.place(bin % o.width, j), height, width));
        for (int64_t ch = 0; ch < channels; ++ch)
          y[(r * channels + ch) * o.height * o.width + bin] =
              pooled<C>(from.data() + (image * channels + ch) * height * width, samples, o.is_max);
      }
    }
  });
  y.commit();
}

template <bool HalfPixel>
void roi_align(kernel_context& c) {
  const roi_options o = parse_roi_options(c.attrs(), HalfPixel);
  require_same(c.input(1).dims[0], c.input(2).dims[0], "regions and their images");
  visit_compute(c.input(0).type, [&]<class T>(type_tag<T>) { run_roi_align<T>(c, o); });
}

/// Four samples an element, unless the attribute says how many.
op_cost roi_align_cost(const attributes& attrs, const call_shapes& call) {
  const auto ratio = static_cast<double>(std::max<int64_t>(2, attrs.integer("sampling_ratio", 0)));
  return {10 * ratio * ratio * static_cast<double>(volume(call.outputs[0])), operand_bytes(call)};
}

template <bool HalfPixel>
constexpr op_def roi_align_row(int64_t since) {
  return op_row("RoiAlign", since, infer_roi_align<HalfPixel>, roi_align<HalfPixel>,
                {.inputs = {3, 3},
                 .types = types::floats,
                 .cost = roi_align_cost,
                 .axes = axes::regions,
                 .mixes = "takes regions of any part of"});
}

// -- MaxRoiPool

std::array<int64_t, 2> pooled_shape(const attributes& attrs) {
  const std::vector<int64_t> stated = attrs.integers("pooled_shape");
  if (stated.size() != 2 || stated[0] < 1 || stated[1] < 1)
    fail(errc::invalid_model, "attribute 'pooled_shape' is {}; two positive numbers are needed", to_string(stated));
  return {stated[0], stated[1]};
}

void infer_max_roi_pool(infer_context& c) {
  const auto [height, width] = pooled_shape(c.attrs());
  const symbolic_shape &x = c.dims(0), &rois = c.dims(1);
  if (x.size() != 4 || rois.size() != 2)
    fail(errc::invalid_model, "operands of shapes {} and {}; [N, C, H, W] and [R, 5] are needed", to_string(x),
         to_string(rois));
  require_same(rois[1], 5, "numbers of a region");
  if (c.type(1) != c.type(0))
    fail(errc::invalid_model, "regions of {}, but {} is needed", to_string(c.type(1)), to_string(c.type(0)));
  c.set_output(0, c.type(0), {rois[0], x[1], height, width});
}

/// The elements of each bin along one axis of `size`: first, and one past the last.
std::vector<std::pair<int64_t, int64_t>> whole_bins(double first, double last, int64_t bins, int64_t size) {
  if (!(std::abs(first) <= 1e9 && std::abs(last) <= 1e9))
    fail(errc::invalid_input, "a region goes from {} to {}", first, last);
  const double begin = std::round(first), extent = std::max(std::round(last) - begin + 1, 1.);
  const auto within = [&](double at) {
    return static_cast<int64_t>(std::clamp(begin + at, 0., static_cast<double>(size)));
  };
  std::vector<std::pair<int64_t, int64_t>> found;
  for (int64_t b = 0; b < bins; ++b) {
    const auto bin = static_cast<double>(b), all = static_cast<double>(bins);
    found.emplace_back(within(std::floor(bin * extent / all)), within(std::ceil((bin + 1) * extent / all)));
  }
  return found;
}

template <class C>
void run_max_roi_pool(kernel_context& c) {
  const const_view& x = c.input(0);
  const std::array<int64_t, 2> pooled = pooled_shape(c.attrs());
  const int64_t out_height = pooled[0], out_width = pooled[1];
  const int64_t images = x.dims[0], channels = x.dims[1], height = x.dims[2], width = x.dims[3];
  const double scale = c.attrs().real("spatial_scale", 1);
  const read_as<C> from(x), rois(c.input(1));
  write_as<C> y(c.output(0));
  for (int64_t r = 0; r < c.input(1).dims[0]; ++r) {
    const C* roi = rois.data() + 5 * r;
    if (!(roi[0] >= 0 && roi[0] < static_cast<C>(images)))
      fail(errc::invalid_input, "region {} is of image {}, of which there are {}", r, roi[0], images);
    const auto rows = whole_bins(roi[2] * scale, roi[4] * scale, out_height, height),
               columns = whole_bins(roi[1] * scale, roi[3] * scale, out_width, width);
    parallel_for(channels, 1, [&](int64_t begin, int64_t end) {
      for (int64_t ch = begin; ch < end; ++ch) {
        const C* plane = from.data() + (static_cast<int64_t>(roi[0]) * channels + ch) * height * width;
        for (int64_t bin = 0; bin < out_height * out_width; ++bin) {
          const auto [top, bottom] = rows[static_cast<size_t>(bin / out_width)];
          const auto [left, right] = columns[static_cast<size_t>(bin % out_width)];
          C most = top < bottom && left < right ? plane[top * width + left] : C(0);
          for (int64_t i = top; i < bottom; ++i)
            for (int64_t j = left; j < right; ++j)
              most = std::max(most, plane[i * width + j]);
          y[(r * channels + ch) * out_height * out_width + bin] = most;
        }
      }
    });
  }
  y.commit();
}

void max_roi_pool(kernel_context& c) {
  visit_compute(c.input(0).type, [&]<class T>(type_tag<T>) { run_max_roi_pool<T>(c); });
}

constexpr auto roi_align_rows = std::to_array<op_def>({
    op_row("MaxRoiPool", 1, infer_max_roi_pool, max_roi_pool,
           {.inputs = {2, 2}, .types = types::floats, .axes = axes::regions, .mixes = "takes regions of any part of"}),
    roi_align_row<false>(10),
    roi_align_row<true>(16),
    roi_align_row<true>(22),
});

} // namespace

extern constinit const op_table onnx_roi_align_ops = roi_align_rows;

} // namespace troupe
