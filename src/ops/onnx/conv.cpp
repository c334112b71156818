// Convolution over one, two or three spatial axes, with groups.
//
//   Y[n, m, o] = B[m] + Σ over channels c of m's group and taps t of X[n, c, o·stride − pad + t·dilation] · W[m, c, t]
//
// X is [N, C, spatial…], W is [M, C / group, kernel…], B is [M]. The kernel copies the inputs under a block of output
// positions into a matrix [C/group · taps × positions] and multiplies it with the group's weights.
#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/gemm.hpp"
#include "ops/operand.hpp"
#include "ops/window.hpp"

#include <algorithm>

namespace troupe {
namespace {

struct conv_spec {
  int64_t groups;
  window_spec window;
};

/// Parses the attributes and checks the operands' shapes; `w` must be known but for its first two dims.
conv_spec parse_conv(const attributes& attrs, std::span<const dim> x, std::span<const dim> w) {
  conv_spec spec{attrs.integer("group", 1), parse_filter(attrs, x, w)};
  spec.window.ceil = false; // not an attribute of convolution
  if (spec.groups < 1 || w[0].constant() % spec.groups != 0)
    fail(errc::invalid_model, "{} output channels cannot be split into {} groups", w[0].constant(), spec.groups);
  require_same(x[1], w[1] * dim(spec.groups), "input channels of the input and of the weights");
  return spec;
}

void infer_conv(infer_context& c) {
  const symbolic_shape &x = c.dims(0), &w = c.dims(1);
  const conv_spec spec = parse_conv(c.attrs(), x, w);
  if (c.has_input(2))
    require_same_dims(c.dims(2), std::span(&w[0], 1), "bias and output channels");
  symbolic_shape dims{x[0], w[0]};
  for (size_t i = 0; i < spec.window.rank(); ++i)
    dims.push_back(window_output(spec.window, i, x[i + 2]));
  c.set_output(0, c.type(0), std::move(dims));
}

/// Fills `row` with the inputs under tap (td, th, tw) of output positions [begin, end) of one channel; 0 in the
/// padding.
template <class C>
void gather_row(const window_axes& axes, std::array<int64_t, 3> tap, const C* channel, int64_t begin, int64_t end,
                C* row) {
  const auto& [d, h, w] = axes;
  int64_t ow = begin % w.out, oh = begin / w.out % h.out, od = begin / w.out / h.out;
  for (int64_t position = begin; position < end; ow = 0) {
    const int64_t run = std::min(w.out - ow, end - position);
    const int64_t id = d.start(od) + tap[0] * d.dilation, ih = h.start(oh) + tap[1] * h.dilation;
    if (id < 0 || id >= d.in || ih < 0 || ih >= h.in) {
      std::fill_n(row, run, C(0));
    } else {
      const C* line = channel + (id * h.in + ih) * w.in;
      int64_t iw = w.start(ow) + tap[2] * w.dilation;
      for (int64_t i = 0; i < run; ++i, iw += w.stride)
        row[i] = iw >= 0 && iw < w.in ? line[iw] : C(0);
    }
    row += run;
    position += run;
    if (++oh == h.out) {
      oh = 0;
      ++od;
    }
  }
}

/// Sizes of one call.
struct conv_sizes {
  int64_t batch, channels, filters, groups;
  window_axes axes;
  int64_t inputs() const { return axes[0].in * axes[1].in * axes[2].in; }
  int64_t outputs() const { return axes[0].out * axes[1].out * axes[2].out; }
  int64_t taps() const { return axes[0].kernel * axes[1].kernel * axes[2].kernel; }
};

/// Output positions that are computed at once.
constexpr int64_t position_block = 256;

/// Computes output positions [begin, end) of all filters of `group` of image `n`.
template <class C>
void conv_block(const conv_sizes& s, int64_t n, int64_t group, int64_t begin, int64_t end, const C* x, const C* w,
                const C* bias, C* y, std::vector<C>& columns) {
  const int64_t width = end - begin, channels = s.channels / s.groups, filters = s.filters / s.groups;
  const int64_t depth = channels * s.taps();
  columns.resize(static_cast<size_t>(depth * width));
  C* row = columns.data();
  for (int64_t c = 0; c < channels; ++c) {
    const C* channel = x + (n * s.channels + group * channels + c) * s.inputs();
    for (int64_t td = 0; td < s.axes[0].kernel; ++td)
      for (int64_t th = 0; th < s.axes[1].kernel; ++th)
        for (int64_t tw = 0; tw < s.axes[2].kernel; ++tw, row += width)
          gather_row(s.axes, {td, th, tw}, channel, begin, end, row);
  }
  const int64_t first = group * filters;
  C* out = y + (n * s.filters + first) * s.outputs() + begin;
  for (int64_t m = 0; m < filters; ++m)
    std::fill_n(out + m * s.outputs(), width, bias ? bias[first + m] : C(0));
  gemm(filters, width, depth, w + first * depth, depth, columns.data(), width, out, s.outputs());
}

void conv(kernel_context& c) {
  const const_view &x = c.input(0), &w = c.input(1);
  const conv_spec spec = parse_conv(c.attrs(), to_symbolic(x.dims), to_symbolic(w.dims));
  const conv_sizes s{x.dims[0], x.dims[1], w.dims[0], spec.groups, bind_window(spec.window, x.dims.subspan(2))};
  if (c.has_input(2))
    require_same(c.input(2).size(), s.filters, "bias and output channels");
  visit_compute(x.type, [&]<class C>(type_tag<C>) {
    const read_as<C> in(x), weights(w), bias(optional_input(c, 2));
    write_as<C> out(c.output(0));
    const int64_t blocks = (s.outputs() + position_block - 1) / position_block;
    parallel_for(s.batch * s.groups * blocks, 1, [&](int64_t begin, int64_t end) {
      std::vector<C> columns;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i % blocks * position_block;
        conv_block(s, i / blocks / s.groups, i / blocks % s.groups, first,
                   std::min(s.outputs(), first + position_block), in.data(), weights.data(), bias.data(), out.data(),
                   columns);
      }
    });
    out.commit();
  });
}

op_cost conv_cost(const attributes&, const call_shapes& call) {
  return {conv_flops(call.inputs[1], call.outputs[0]), operand_bytes(call)};
}

void conv_axes(call_axes& a) {
  axes::filters(a, 1, 0, {2});
  axes::windows(a, parse_filter(a.call().attrs(), a.call().dims(0), a.call().dims(1)));
}

constexpr auto conv_rows = std::to_array<op_def>({
    op_row("Conv", 1, infer_conv, conv,
           {.inputs = {2, 3},
            .types = types::floats,
            .layouts = layout_support::spatial,
            .cost = conv_cost,
            .axes = conv_axes,
            .mixes = "sums over"}),
});

} // namespace

extern constinit const op_table onnx_conv_ops = conv_rows;

} // namespace troupe
