// Col2Im: columns of blocks are added up to the images that the blocks were taken from (MaxPool's windows, not their
// maxima).
//
//   y[n, c, o·stride − pad + t·dilation] += x[n, c · taps + t, o]     for all positions o of the block and taps t of it
//
// x is [N, C · taps, positions], y is [N, C, image…] with one to three spatial axes; what falls into the padding is
// left out.
#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/operand.hpp"
#include "ops/window.hpp"

#include <algorithm>

namespace troupe {
namespace {

struct col2im_spec {
  window_spec window;
  int64_t taps;
};

col2im_spec parse_col2im(const attributes& attrs, std::span<const dim> x, std::vector<int64_t> block, size_t axes) {
  if (x.size() != 3)
    fail(errc::invalid_model, "the input has rank {}, not 3", x.size());
  if (block.size() != axes)
    fail(errc::invalid_model, "block_shape has {} elements, image_shape {}", block.size(), axes);
  col2im_spec spec{parse_window(attrs, std::move(block)), 1};
  spec.window.mode = auto_pad::notset; // not attributes of Col2Im
  spec.window.ceil = false;
  spec.taps = volume(spec.window.kernel);
  if (x[1].is_constant() && x[1].constant() % spec.taps != 0)
    fail(errc::invalid_model, "{} channels are not a multiple of the block's {} elements", x[1].constant(), spec.taps);
  return spec;
}

void infer_col2im(infer_context& c) {
  const symbolic_shape& x = c.dims(0);
  const std::vector<dim> image = c.require_known(1);
  const col2im_spec spec = parse_col2im(c.attrs(), x, c.require_constants(2), image.size());
  std::vector<dim> positions;
  for (size_t i = 0; i < image.size(); ++i) {
    if (image[i].is_constant() && image[i].constant() < 0)
      fail(errc::invalid_model, "image_shape {} has a negative dim", to_string(image));
    positions.push_back(window_output(spec.window, i, image[i]));
  }
  require_same(x[2], volume(positions), "columns of the input and positions of the block");
  symbolic_shape out{x[0], floor_div(x[1], spec.taps)};
  out.insert(out.end(), image.begin(), image.end());
  c.set_output(0, c.type(0), std::move(out));
}

/// What elements of T are added up in: integers wrap around.
template <class T>
using col2im_sum = std::conditional_t<std::is_integral_v<T>, uint64_t, std::conditional_t<sizeof(T) == 2, float, T>>;

/// Adds one channel's columns, [taps, positions], to its plane.
template <class T, class Sum>
void add_columns(const window_axes& axes, const T* columns, Sum* plane) {
  const auto& [d, h, w] = axes;
  for (int64_t td = 0; td < d.kernel; ++td)
    for (int64_t th = 0; th < h.kernel; ++th)
      for (int64_t tw = 0; tw < w.kernel; ++tw)
        for (int64_t od = 0; od < d.out; ++od)
          for (int64_t oh = 0; oh < h.out; ++oh, columns += w.out) {
            const int64_t id = d.start(od) + td * d.dilation, ih = h.start(oh) + th * h.dilation;
            if (id < 0 || id >= d.in || ih < 0 || ih >= h.in)
              continue;
            Sum* line = plane + (id * h.in + ih) * w.in;
            int64_t iw = w.start(0) + tw * w.dilation;
            for (int64_t ow = 0; ow < w.out; ++ow, iw += w.stride)
              if (iw >= 0 && iw < w.in)
                line[iw] += static_cast<Sum>(columns[ow]);
          }
}

void col2im(kernel_context& c) {
  const const_view& x = c.input(0);
  const std::vector<int64_t> image = to_int64(c.input(1));
  const col2im_spec spec = parse_col2im(c.attrs(), to_symbolic(x.dims), to_int64(c.input(2)), image.size());
  const window_axes axes = bind_window(spec.window, image);
  require_same(x.dims[2], volume(shape{axes[0].out, axes[1].out, axes[2].out}),
               "columns of the input and positions of the block");
  const int64_t area = volume(image);
  visit_numeric(x.type, [&]<class T>(type_tag<T>) {
    parallel_for(x.dims[0] * x.dims[1] / spec.taps, 1, [&](int64_t begin, int64_t end) {
      std::vector<col2im_sum<T>> plane(static_cast<size_t>(area));
      for (int64_t i = begin; i < end; ++i) {
        std::fill(plane.begin(), plane.end(), col2im_sum<T>());
        add_columns(axes, x.as<T>() + i * spec.taps * x.dims[2], plane.data());
        std::transform(plane.begin(), plane.end(), c.output(0).as<T>() + i * area,
                       [](col2im_sum<T> sum) { return static_cast<T>(sum); });
      }
    });
  });
}

/// Batches, and channels, which have an index for each tap in the operand.
void col2im_axes(call_axes& a) {
  a.batches();
  a.map({{0, 1, volume(to_symbolic(a.call().require_constants(2)))}}, {{0, 1}});
}

constexpr auto col2im_rows = std::to_array<op_def>({
    op_row("Col2Im", 18, infer_col2im, col2im,
           {.inputs = {3, 3}, .types = types::numeric, .host_inputs = 0b110, .axes = col2im_axes}),
});

} // namespace

extern constinit const op_table onnx_col2im_ops = col2im_rows;

} // namespace troupe
