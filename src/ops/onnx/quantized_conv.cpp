// ConvInteger and QLinearConv: convolutions of 8-bit tensors with 32-bit sums that wrap, NCHW, one to three spatial
// axes.
//
//   C = Σ (x - x_zero) (w - w_zero)      y = saturate(⌊(C + bias) · (x_scale · w_scale / y_scale)⌉ + y_zero)
//
// The weights' zero point and scale are for all filters or for each. Padding has the value x_zero, so it adds nothing.
#include "base/parallel.hpp"
#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/infer.hpp"
#include "ops/operand.hpp"
#include "ops/quantization.hpp"
#include "ops/window.hpp"

namespace troupe {
namespace {

window_spec parse_spec(const attributes& attrs, std::span<const dim> x, std::span<const dim> w) {
  if (x.size() < 3 || w.size() != x.size())
    fail(errc::invalid_model, "operand {} and weights {} do not make a convolution", to_string(x), to_string(w));
  if (!is_constant(w))
    fail(errc::unsupported, "the weights' shape {} must be constant", to_string(w));
  const shape kernel = constants(w.subspan(2));
  if (attrs.integers("kernel_shape", kernel) != kernel)
    fail(errc::invalid_model, "'kernel_shape' does not fit weights of shape {}", to_string(w));
  const int64_t group = attrs.integer("group", 1);
  if (group < 1 || w[0].constant() % group != 0)
    fail(errc::invalid_model, "{} filters cannot be cut into {} groups", w[0].constant(), group);
  if (x[1].is_constant() && (x[1].constant() % group != 0 || x[1].constant() / group != w[1].constant()))
    fail(errc::invalid_model, "{} channels in {} groups do not fit weights of shape {}", x[1].constant(), group,
         to_string(w));
  return parse_window(attrs, kernel);
}

symbolic_shape output_dims(const attributes& attrs, std::span<const dim> x, std::span<const dim> w) {
  const window_spec spec = parse_spec(attrs, x, w);
  symbolic_shape dims{x[0], w[0]};
  for (size_t axis = 0; axis < spec.rank(); ++axis)
    dims.push_back(window_output(spec, axis, x[axis + 2]));
  return dims;
}

/// Input `i` as one value for each filter (absent: `otherwise`).
template <class T>
std::vector<T> by_filter(const kernel_context& c, size_t i, int64_t filters, T otherwise) {
  std::vector<T> values(static_cast<size_t>(filters), otherwise);
  if (!c.has_input(i))
    return values;
  const tensor given = converted<T>(c.input(i));
  if (given.size() != 1 && given.size() != filters)
    fail(errc::invalid_input, "input {} has {} elements for {} filters", i, given.size(), filters);
  for (size_t f = 0; f < values.size(); ++f)
    values[f] = given.template data<T>()[given.size() == 1 ? 0 : f];
  return values;
}

template <class T>
T only_element(const kernel_context& c, size_t i) {
  if (!c.has_input(i))
    return T(0);
  if (c.input(i).size() != 1)
    fail(errc::unsupported, "input {} must be a single element", i);
  return *converted<T>(c.input(i)).template data<T>();
}

/// One convolution with concrete sizes and centred operands.
struct convolution {
  int64_t batch, channels, filters, filter_channels, per_group;
  window_axes axes;
  tensor x, w; // int32, zero points subtracted

  int64_t in_volume() const { return axes[0].in * axes[1].in * axes[2].in; }
  int64_t out_volume() const { return axes[0].out * axes[1].out * axes[2].out; }
  int64_t kernel_volume() const { return axes[0].kernel * axes[1].kernel * axes[2].kernel; }

  uint32_t sum(const int32_t* image, const int32_t* filter, const std::array<int64_t, 3>& o) const {
    uint32_t total = 0; // unsigned: sums wrap
    const auto& [d, h, w_] = axes;
    for (int64_t channel = 0; channel < filter_channels; ++channel)
      for (int64_t i = d.first_tap(o[0]); i < d.last_tap(o[0]); ++i)
        for (int64_t j = h.first_tap(o[1]); j < h.last_tap(o[1]); ++j) {
          const int64_t plane = d.start(o[0]) + i * d.dilation, row = h.start(o[1]) + j * h.dilation;
          const int32_t* from = image + channel * in_volume() + (plane * h.in + row) * w_.in + w_.start(o[2]);
          const int32_t* taps = filter + channel * kernel_volume() + (i * h.kernel + j) * w_.kernel;
          for (int64_t k = w_.first_tap(o[2]); k < w_.last_tap(o[2]); ++k)
            total += static_cast<uint32_t>(from[k * w_.dilation]) * static_cast<uint32_t>(taps[k]);
        }
    return total;
  }
};

convolution prepare(const kernel_context& c, size_t w_input, size_t x_zero_input, size_t w_zero_input) {
  const shape x(c.input(0).dims.begin(), c.input(0).dims.end());
  const shape w(c.input(w_input).dims.begin(), c.input(w_input).dims.end());
  const window_spec spec = parse_spec(c.attrs(), to_symbolic(x), to_symbolic(w));
  convolution conv{x[0],
                   x[1],
                   w[0],
                   w[1],
                   w[0] / c.attrs().integer("group", 1),
                   bind_window(spec, std::span(x).subspan(2)),
                   converted<int32_t>(c.input(0)),
                   converted<int32_t>(c.input(w_input))};
  const auto x_zero = only_element<int32_t>(c, x_zero_input);
  int32_t* values = conv.x.mutable_data<int32_t>();
  for (int64_t i = 0; i < conv.x.size(); ++i)
    values[i] -= x_zero;
  const auto w_zero = by_filter<int32_t>(c, w_zero_input, conv.filters, 0);
  const int64_t per_filter = conv.filter_channels * conv.kernel_volume();
  for (int64_t i = 0; i < conv.w.size(); ++i)
    conv.w.mutable_data<int32_t>()[i] -= w_zero[static_cast<size_t>(i / per_filter)];
  return conv;
}

/// Computes every sum and hands it to `finish(sum, filter, index in the output)`.
template <class F>
void convolve(const convolution& conv, F finish) {
  const int64_t work = conv.out_volume() * conv.filter_channels * conv.kernel_volume();
  parallel_for(conv.batch * conv.filters, std::max<int64_t>(1, 64 * 1024 / std::max<int64_t>(1, work)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t map = begin; map < end; ++map) {
                   const int64_t image = map / conv.filters, filter = map % conv.filters;
                   const int64_t channel = filter / conv.per_group * conv.filter_channels;
                   const int32_t* x = conv.x.data<int32_t>() + (image * conv.channels + channel) * conv.in_volume();
                   const int32_t* w = conv.w.data<int32_t>() + filter * conv.filter_channels * conv.kernel_volume();
                   int64_t to = map * conv.out_volume();
                   for (int64_t i = 0; i < conv.axes[0].out; ++i)
                     for (int64_t j = 0; j < conv.axes[1].out; ++j)
                       for (int64_t k = 0; k < conv.axes[2].out; ++k, ++to)
                         finish(conv.sum(x, w, {i, j, k}), filter, to);
                 }
               });
}

void conv_integer(kernel_context& c) {
  int32_t* y = c.output(0).as<int32_t>();
  convolve(prepare(c, 1, 2, 3), [&](uint32_t sum, int64_t, int64_t to) { y[to] = static_cast<int32_t>(sum); });
}

void qlinear_conv(kernel_context& c) {
  const convolution conv = prepare(c, 3, 2, 5);
  const float x_scale = only_element<float>(c, 1), y_scale = only_element<float>(c, 6);
  const float y_zero = only_element<float>(c, 7);
  std::vector<float> scales = by_filter<float>(c, 4, conv.filters, 1.f);
  for (float& scale : scales)
    scale = x_scale * scale / y_scale;
  if (c.has_input(8) && c.input(8).size() != conv.filters)
    fail(errc::invalid_input, "{} biases for {} filters", c.input(8).size(), conv.filters);
  const auto bias = by_filter<int32_t>(c, 8, conv.filters, 0);
  const quantized_range range = range_of(c.output(0).type);
  visit_integer(c.output(0).type, [&]<class T>(type_tag<T>) {
    T* y = c.output(0).as<T>();
    convolve(conv, [&](uint32_t sum, int64_t filter, int64_t to) {
      const auto f = static_cast<size_t>(filter);
      const auto total = static_cast<float>(static_cast<int32_t>(sum + static_cast<uint32_t>(bias[f])));
      y[to] = static_cast<T>(saturated(total * scales[f], y_zero, range));
    });
  });
}

void infer_conv_integer(infer_context& c) {
  require_bytes(c.type(1));
  require_zero_point(c, 2, 0);
  require_zero_point(c, 3, 1);
  const symbolic_shape y = output_dims(c.attrs(), c.dims(0), c.dims(1));
  require_parameter(c, 2);
  require_parameter(c, 3, {y[1]});
  c.set_output(0, dtype::int32, y);
}

void infer_qlinear_conv(infer_context& c) {
  require_bytes(c.type(3));
  require_bytes(c.type(7));
  require_zero_point(c, 2, 0);
  require_zero_point(c, 5, 3);
  const symbolic_shape y = output_dims(c.attrs(), c.dims(0), c.dims(3));
  for (const size_t of_tensor : {1, 2, 6, 7})
    require_parameter(c, of_tensor);
  for (const size_t of_filters : {4, 5})
    require_parameter(c, of_filters, {y[1]});
  if (c.has_input(8) && c.has_rank(8))
    require_same(volume(std::span<const dim>(c.dims(8))), y[1], "elements of the bias and filters");
  c.set_output(0, c.type(7), y);
}

op_cost quantized_conv_cost(const call_shapes& call, size_t weights) {
  const shape &w = call.inputs[weights], &y = call.outputs[0];
  return {conv_flops(w, y),
          static_cast<double>(volume(call.inputs[0]) + volume(w) + bytes_of(call.output_types[0], volume(y)))};
}

op_cost conv_integer_cost(const attributes&, const call_shapes& call) {
  return quantized_conv_cost(call, 1);
}

op_cost qlinear_conv_cost(const attributes&, const call_shapes& call) {
  return quantized_conv_cost(call, 3);
}

void conv_integer_axes(call_axes& a) {
  axes::filters(a, 1, 0, {3});
}

void qlinear_conv_axes(call_axes& a) {
  axes::filters(a, 3, 0, {4, 5, 8});
}

constexpr auto quantized_conv_rows = std::to_array<op_def>({
    op_row("ConvInteger", 10, infer_conv_integer, conv_integer,
           {.inputs = {2, 4},
            .types = byte_types,
            .layouts = layout_support::spatial,
            .cost = conv_integer_cost,
            .axes = conv_integer_axes,
            .mixes = "sums over"}),
    op_row("QLinearConv", 10, infer_qlinear_conv, qlinear_conv,
           {.inputs = {8, 9},
            .types = byte_types,
            .layouts = layout_support::spatial,
            .needs_float32 = true,
            .cost = qlinear_conv_cost,
            .axes = qlinear_conv_axes,
            .mixes = "sums over"}),
});

} // namespace

extern constinit const op_table onnx_quantized_conv_ops = quantized_conv_rows;

} // namespace troupe
