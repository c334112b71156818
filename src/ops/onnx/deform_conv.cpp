// DeformConv: a convolution whose taps are moved by offsets (Dai et al., "Deformable convolutional networks", ICCV
// 2017; Zhu et al., "Deformable ConvNets v2", CVPR 2019).
//
//   y[n, m, o] = b[m] + Σ over the group's channels c and taps t of w[m, c, t] · mask[n, g, t, o] · x[n, c](o·stride −
//     pad + t·dilation + offset[n, g, t, o])
//
// x is [N, C, H, W], w [M, C / group, kh, kw], offset [N, offset_group · kh · kw · 2, oh, ow] with the row's before the
// column's, b [M], mask [N, offset_group · kh · kw, oh, ow]. Channel c is of offset group g = c / (C / offset_group).
// Between elements x is interpolated linearly; outside it is zero, and where an offset is NaN.
#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/operand.hpp"
#include "ops/window.hpp"

#include <cmath>

namespace troupe {
namespace {

constexpr size_t bias_input = 3, mask_input = 4;

struct deform_groups {
  int64_t group, offset_group;
};

deform_groups parse_groups(const attributes& attrs, const dim& channels) {
  const deform_groups g{attrs.integer("group", 1), attrs.integer("offset_group", 1)};
  for (const int64_t count : {g.group, g.offset_group})
    if (count < 1 || (channels.is_constant() && channels.constant() % count != 0))
      fail(errc::invalid_model, "{} channels cannot be split into {} groups", to_string(symbolic_shape{channels}),
           count);
  return g;
}

/// Throws unless the operands fit each other; returns y's dims.
template <class DimsOf, class Has>
symbolic_shape deformed_dims(const attributes& attrs, DimsOf&& dims_of, Has&& has) {
  const symbolic_shape x = dims_of(0), w = dims_of(1);
  if (x.size() != 4 || w.size() != 4)
    fail(x.size() == w.size() && x.size() > 2 ? errc::unsupported : errc::invalid_model,
         "an input of shape {} and weights of shape {}: images are needed, [N, C, H, W]", to_string(x), to_string(w));
  const deform_groups g = parse_groups(attrs, x[1]);
  require_same(w[1] * dim(g.group), x[1], "channels of the weights' groups and of the input");
  if (w[0].is_constant() && w[0].constant() % g.group != 0)
    fail(errc::invalid_model, "{} filters cannot be split into {} groups", w[0].constant(), g.group);
  const window_spec window = parse_filter(attrs, x, w);
  const int64_t taps = volume(window.kernel);
  symbolic_shape y{x[0], w[0], window_output(window, 0, x[2]), window_output(window, 1, x[3])};
  require_same_dims(dims_of(2), symbolic_shape{x[0], g.offset_group * taps * 2, y[2], y[3]},
                    "offsets, and what taps and output need");
  if (has(bias_input))
    require_same_dims(dims_of(bias_input), symbolic_shape{w[0]}, "bias and filters");
  if (has(mask_input))
    require_same_dims(dims_of(mask_input), symbolic_shape{x[0], g.offset_group * taps, y[2], y[3]},
                      "mask, and what taps and output need");
  return y;
}

void infer_deform_conv(infer_context& c) {
  for (size_t i = 1; i < c.input_count(); ++i)
    if (c.has_input(i) && c.type(i) != c.type(0))
      fail(errc::invalid_model, "input {} is of {}, input 0 of {}", i, to_string(c.type(i)), to_string(c.type(0)));
  c.set_output(0, c.type(0),
               deformed_dims(
                   c.attrs(), [&](size_t i) { return c.dims(i); }, [&](size_t i) { return c.has_input(i); }));
}

/// Returns a plane's value at a place.
template <class C>
C interpolated(const C* plane, int64_t height, int64_t width, C y, C x) {
  if (!(y > -1 && y < static_cast<C>(height) && x > -1 && x < static_cast<C>(width)))
    return 0;
  const C top = std::floor(y), left = std::floor(x), dy = y - top, dx = x - left;
  const auto at = [&](int64_t row, int64_t column) {
    return row >= 0 && row < height && column >= 0 && column < width ? plane[row * width + column] : C(0);
  };
  const auto i = static_cast<int64_t>(top), j = static_cast<int64_t>(left);
  return (1 - dy) * ((1 - dx) * at(i, j) + dx * at(i, j + 1)) + dy * ((1 - dx) * at(i + 1, j) + dx * at(i + 1, j + 1));
}

template <class C>
struct deform_call {
  read_as<C> x, w, offset, bias, mask;
  int64_t images, channels, filters, taps, offset_group, group;
  window_axis rows, columns;

  explicit deform_call(const kernel_context& c)
      : x(c.input(0)), w(c.input(1)), offset(c.input(2)), bias(optional_input(c, bias_input)),
        mask(optional_input(c, mask_input)), images(c.input(0).dims[0]), channels(c.input(0).dims[1]),
        filters(c.input(1).dims[0]) {
    const shape in(c.input(0).dims.begin(), c.input(0).dims.end());
    const deform_groups g = parse_groups(c.attrs(), in[1]);
    group = g.group;
    offset_group = g.offset_group;
    const window_spec window = parse_filter(c.attrs(), to_symbolic(in), to_symbolic(c.input(1).dims));
    const window_axes axes = bind_window(window, std::span(in).subspan(2));
    rows = axes[1];
    columns = axes[2];
    taps = rows.kernel * columns.kernel;
  }

  int64_t area() const { return rows.out * columns.out; }

  /// What the filters of all groups meet at output element `o` of image `n`: [channels, taps].
  void gather(int64_t n, int64_t o, C* samples) const {
    const int64_t of_group = channels / offset_group;
    for (int64_t ch = 0; ch < channels; ++ch)
      for (int64_t t = 0; t < taps; ++t) {
        const int64_t at = (n * offset_group + ch / of_group) * taps + t;
        const int64_t row = rows.start(o / columns.out) + t / columns.kernel * rows.dilation,
                      column = columns.start(o % columns.out) + t % columns.kernel * columns.dilation;
        const C *plane = x.data() + (n * channels + ch) * rows.in * columns.in,
                *moved = offset.data() + 2 * at * area() + o;
        const C value = interpolated(plane, rows.in, columns.in, static_cast<C>(row) + moved[0],
                                     static_cast<C>(column) + moved[area()]);
        samples[ch * taps + t] = mask ? value * mask[at * area() + o] : value;
      }
  }

  C filtered(const C* samples, int64_t m) const {
    const int64_t depth = channels / group * taps, g = m / (filters / group);
    C sum = bias ? bias[m] : C(0);
    for (int64_t i = 0; i < depth; ++i)
      sum += w[m * depth + i] * samples[g * depth + i];
    return sum;
  }
};

template <class C>
void run_deform_conv(kernel_context& c) {
  const deform_call<C> call(c);
  write_as<C> y(c.output(0));
  parallel_for(call.images * call.area(), 8, [&](int64_t begin, int64_t end) {
    std::vector<C> samples(static_cast<size_t>(call.channels * call.taps));
    for (int64_t i = begin; i < end; ++i) {
      const int64_t n = i / call.area(), o = i % call.area();
      call.gather(n, o, samples.data());
      for (int64_t m = 0; m < call.filters; ++m)
        y[(n * call.filters + m) * call.area() + o] = call.filtered(samples.data(), m);
    }
  });
  y.commit();
}

void deform_conv(kernel_context& c) {
  deformed_dims(
      c.attrs(), [&](size_t i) { return to_symbolic(c.input(i).dims); }, [&](size_t i) { return c.has_input(i); });
  visit_compute(c.input(0).type, [&]<class T>(type_tag<T>) { run_deform_conv<T>(c); });
}

op_cost deform_conv_cost(const attributes&, const call_shapes& call) {
  return {conv_flops(call.inputs[1], call.outputs[0]), operand_bytes(call)};
}

constexpr op_def deform_conv_row(int64_t since) {
  return op_row("DeformConv", since, infer_deform_conv, deform_conv,
                {.inputs = {3, 5},
                 .types = types::floats,
                 .cost = deform_conv_cost,
                 .axes = axes::batch<2, mask_input>,
                 .mixes = "samples"});
}

constexpr auto deform_conv_rows = std::to_array<op_def>({
    deform_conv_row(19),
    deform_conv_row(22),
});

} // namespace

extern constinit const op_table onnx_deform_conv_ops = deform_conv_rows;

} // namespace troupe
