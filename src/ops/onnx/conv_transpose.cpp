// Transposed convolution: every input element adds its filter, scaled, to the output.
//
//   Y[n, m, i·stride − pad + t·dilation] += X[n, c, i] · W[c, m, t]     for channels c and filters m of one group
//
// X is [N, C, spatial…], W is [C, M / group, kernel…], B is [M]. Output sizes: stride·(in − 1) + output_padding +
// extent − pads, or as `output_shape` or `auto_pad` state them; the padding then follows from the size (the operator's
// text has the formula).
#include "ops/onnx/conv_transpose.hpp"

#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/operand.hpp"
#include "ops/window.hpp"

#include <algorithm>

namespace troupe {
namespace {

struct transpose_spec {
  int64_t groups;
  window_spec window;
  std::vector<int64_t> output_padding;
  std::vector<int64_t> output_shape; // empty if it is not stated
};

/// Returns a list attribute of `count` elements ≥ 0, or `otherwise`.
std::vector<int64_t> list(const attributes& attrs, std::string_view name, size_t count,
                          std::vector<int64_t> otherwise) {
  std::vector<int64_t> values = attrs.integers(name, {});
  if (values.empty())
    return otherwise;
  if (values.size() != count)
    fail(errc::invalid_model, "attribute '{}' has {} elements, but {} are needed", name, values.size(), count);
  for (int64_t value : values)
    if (value < 0 || value >= int64_t{1} << 31)
      fail(errc::invalid_model, "attribute '{}' holds {}, which is not in [0, 2^31)", name, value);
  return values;
}

transpose_spec parse(const attributes& attrs, std::span<const dim> x, std::span<const dim> w) {
  transpose_spec spec{attrs.integer("group", 1), parse_filter(attrs, x, w), {}, {}};
  const size_t rank = spec.window.rank();
  spec.output_padding = list(attrs, "output_padding", rank, std::vector<int64_t>(rank, 0));
  std::vector<int64_t> stated = attrs.integers("output_shape", {});
  if (stated.size() == rank + 2) // some exporters list N and C too
    stated.erase(stated.begin(), stated.begin() + 2);
  attributes spatial_only;
  spatial_only.set("output_shape", stated);
  spec.output_shape = list(spatial_only, "output_shape", rank, {});
  if (spec.groups < 1 || w[0].constant() % spec.groups != 0)
    fail(errc::invalid_model, "{} input channels cannot be split into {} groups", w[0].constant(), spec.groups);
  require_same(x[1], w[0], "input channels of the input and of the weights");
  return spec;
}

/// Returns the output size along spatial axis `i` without any padding.
dim full_size(const transpose_spec& spec, size_t i, const dim& in) {
  return dim(spec.window.strides[i]) * (in - 1) + dim(spec.output_padding[i] + spec.window.extent(i));
}

dim output_size(const transpose_spec& spec, size_t i, const dim& in) {
  const window_spec& w = spec.window;
  if (!spec.output_shape.empty())
    return spec.output_shape[i];
  if (w.mode == auto_pad::same_upper || w.mode == auto_pad::same_lower)
    return in * dim(w.strides[i]);
  const int64_t pads = w.mode == auto_pad::notset ? w.pads[i] + w.pads[i + w.rank()] : 0;
  dim size = full_size(spec, i, in) - dim(pads);
  if (size.is_constant() && size.constant() < 0)
    fail(errc::invalid_model, "spatial axis {}: the padding {} is larger than the output", i, pads);
  return size;
}

/// Returns how many elements are cut off the front of spatial axis `i`.
int64_t pad_begin(const transpose_spec& spec, size_t i, int64_t in, int64_t out) {
  const window_spec& w = spec.window;
  if (spec.output_shape.empty() && (w.mode == auto_pad::valid || w.mode == auto_pad::notset))
    return w.mode == auto_pad::valid ? 0 : w.pads[i];
  const int64_t total = std::max<int64_t>(0, full_size(spec, i, in).constant() - out);
  return w.mode == auto_pad::same_upper ? total / 2 : total - total / 2;
}

void infer_conv_transpose(infer_context& c) {
  const symbolic_shape &x = c.dims(0), &w = c.dims(1);
  const transpose_spec spec = parse(c.attrs(), x, w);
  const dim filters = w[1] * dim(spec.groups);
  if (c.has_input(2))
    require_same_dims(c.dims(2), std::span(&filters, 1), "bias and output channels");
  symbolic_shape dims{x[0], filters};
  for (size_t i = 0; i < spec.window.rank(); ++i)
    dims.push_back(output_size(spec, i, x[i + 2]));
  c.set_output(0, c.type(0), std::move(dims));
}

/// Returns the axes with input and output exchanged: tap t of input i lands on output start(i) + t·dilation.
window_axes bind(const transpose_spec& spec, std::span<const int64_t> spatial) {
  window_axes axes;
  const size_t rank = spec.window.rank();
  for (size_t i = 0; i < rank; ++i) {
    window_axis& a = axes[3 - rank + i];
    a.out = spatial[i];
    a.in = output_size(spec, i, dim(spatial[i])).constant();
    a.kernel = spec.window.kernel[i];
    a.stride = spec.window.strides[i];
    a.dilation = spec.window.dilations[i];
    a.pad_begin = pad_begin(spec, i, a.out, a.in);
  }
  return axes;
}

/// Adds one input plane, filtered, to one output plane. In `axes`, `out` counts inputs and `in` outputs (see `bind`).
template <class C>
void scatter_plane(const window_axes& axes, const C* x, const C* filter, C* y) {
  const auto& [d, h, w] = axes;
  for (int64_t td = 0; td < d.kernel; ++td)
    for (int64_t th = 0; th < h.kernel; ++th)
      for (int64_t tw = 0; tw < w.kernel; ++tw, ++filter)
        for (int64_t id = 0; id < d.out; ++id) {
          const int64_t od = d.start(id) + td * d.dilation;
          if (od < 0 || od >= d.in)
            continue;
          for (int64_t ih = 0; ih < h.out; ++ih) {
            const int64_t oh = h.start(ih) + th * h.dilation;
            if (oh < 0 || oh >= h.in)
              continue;
            const C* from = x + (id * h.out + ih) * w.out;
            C* to = y + (od * h.in + oh) * w.in;
            int64_t ow = w.start(0) + tw * w.dilation;
            for (int64_t iw = 0; iw < w.out; ++iw, ow += w.stride)
              if (ow >= 0 && ow < w.in)
                to[ow] += from[iw] * *filter;
          }
        }
}

void conv_transpose(kernel_context& c) {
  const const_view &x = c.input(0), &w = c.input(1);
  const transpose_spec spec = parse(c.attrs(), to_symbolic(x.dims), to_symbolic(w.dims));
  const window_axes axes = bind(spec, x.dims.subspan(2));
  const int64_t channels = x.dims[1] / spec.groups, filters = w.dims[1], all_filters = filters * spec.groups;
  if (c.has_input(2))
    require_same(c.input(2).size(), all_filters, "bias and output channels");
  const int64_t in_plane = volume(x.dims.subspan(2)), out_plane = volume(c.output(0).dims.subspan(2));
  const int64_t taps = volume(w.dims.subspan(2));
  visit_compute(x.type, [&]<class C>(type_tag<C>) {
    const read_as<C> in(x), weights(w), bias(optional_input(c, 2));
    write_as<C> out(c.output(0));
    parallel_for(x.dims[0] * all_filters, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t n = i / all_filters, m = i % all_filters, group = m / filters;
        C* plane = out.data() + i * out_plane;
        std::fill_n(plane, out_plane, bias ? bias[m] : C(0));
        for (int64_t k = group * channels; k < (group + 1) * channels; ++k)
          scatter_plane(axes, in.data() + (n * x.dims[1] + k) * in_plane,
                        weights.data() + (k * filters + m % filters) * taps, plane);
      }
    });
    out.commit();
  });
}

op_cost conv_transpose_cost(const attributes&, const call_shapes& call) {
  return {conv_flops(call.inputs[1], call.inputs[0]), operand_bytes(call)};
}

void conv_transpose_axes(call_axes& a) {
  axes::filters(a, 1, 1, {2});
}

constexpr auto conv_transpose_rows = std::to_array<op_def>({
    op_row("ConvTranspose", 1, infer_conv_transpose, conv_transpose,
           {.inputs = {2, 3},
            .types = types::floats,
            .layouts = layout_support::spatial,
            .cost = conv_transpose_cost,
            .axes = conv_transpose_axes,
            .mixes = "sums over"}),
});

} // namespace

window_axes transpose_axes(const attributes& attrs, std::span<const int64_t> x, std::span<const int64_t> w) {
  const transpose_spec spec = parse(attrs, to_symbolic(x), to_symbolic(w));
  return bind(spec, x.subspan(2));
}

extern constinit const op_table onnx_conv_transpose_ops = conv_transpose_rows;

} // namespace troupe
