// Pooling over the spatial axes of [N, C, spatial…]: maximum, average and p-norm of a window, or of the whole plane.
//
// Taps outside the input take no part, except that AveragePool with count_include_pad counts those in the padding (not
// those beyond it, which ceil_mode can reach) as zeros.
//
// MaxpoolWithMask of com.microsoft, as ONNX Runtime defines it: along the last axis a window ends before the first
// element whose mask is 0; the first element of a plane of two axes or more counts whatever its mask. A window without
// elements is the lowest float. M is [.., .., spatial…]: the mask of x's plane p begins at element p · (elements of a
// plane) mod (planes of M), for ONNX Runtime takes elements for planes.
#include "ops/onnx/pool.hpp"

#include "ops/axes.hpp"
#include "ops/expansion.hpp"
#include "ops/operand.hpp"

#include <cmath>
#include <limits>

namespace troupe {

window_spec parse_pool(const attributes& attrs, size_t rank) {
  require_rank(rank, 3, "the input");
  window_spec spec = parse_window(attrs, attrs.integers("kernel_shape"));
  if (spec.rank() + 2 != rank)
    fail(errc::invalid_model, "kernel_shape has {} elements, but the input has rank {}", spec.rank(), rank);
  return spec;
}

window_spec plane_window(const shape& x) {
  window_spec spec;
  spec.kernel.assign(x.begin() + 2, x.end());
  spec.strides = spec.dilations = shape(spec.rank(), 1);
  spec.pads.assign(2 * spec.rank(), 0);
  return spec;
}

double norm_order(const attributes& attrs) {
  double p = 2;
  for (const auto& [name, value] : attrs.all())
    if (name == "p")
      p = std::holds_alternative<float>(value) ? attrs.real("p") : static_cast<double>(attrs.integer("p"));
  if (!(p > 0))
    fail(errc::invalid_model, "attribute 'p' is {}, but must be positive", p);
  return p;
}

namespace {

void infer_pool(infer_context& c) {
  const symbolic_shape& x = c.dims(0);
  const window_spec spec = parse_pool(c.attrs(), x.size());
  symbolic_shape dims{x[0], x[1]};
  for (size_t i = 0; i < spec.rank(); ++i)
    dims.push_back(window_output(spec, i, x[i + 2]));
  c.set_output(1, dtype::int64, dims);
  c.set_output(0, c.type(0), std::move(dims));
}

void infer_global(infer_context& c) {
  symbolic_shape dims = c.dims(0);
  require_rank(dims.size(), 3, "the input");
  for (size_t i = 2; i < dims.size(); ++i)
    dims[i] = 1;
  c.set_output(0, c.type(0), std::move(dims));
}

/// Calls `tap(offset, element)` for every input element under output (od, oh, ow) of a plane.
template <class C, class F>
void for_taps(const window_axes& axes, int64_t od, int64_t oh, int64_t ow, const C* plane, F&& tap) {
  const auto& [d, h, w] = axes;
  const int64_t w0 = w.first_tap(ow), w1 = w.last_tap(ow);
  for (int64_t td = d.first_tap(od); td < d.last_tap(od); ++td)
    for (int64_t th = h.first_tap(oh); th < h.last_tap(oh); ++th) {
      const int64_t line = ((d.start(od) + td * d.dilation) * h.in + h.start(oh) + th * h.dilation) * w.in;
      for (int64_t tw = w0; tw < w1; ++tw) {
        const int64_t offset = line + w.start(ow) + tw * w.dilation;
        tap(offset, plane[offset]);
      }
    }
}

/// Calls `f(plane index, input plane, output offset, od, oh, ow)` for every output element, planes in parallel.
template <class C, class F>
void for_outputs(const const_view& x, const window_axes& axes, const C* in, F&& f) {
  const int64_t in_plane = volume(x.dims.subspan(2));
  const int64_t out_plane = axes[0].out * axes[1].out * axes[2].out;
  const int64_t grain = std::max<int64_t>(1, 8192 / std::max<int64_t>(1, out_plane));
  parallel_for(x.dims[0] * x.dims[1], grain, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      int64_t at = p * out_plane;
      for (int64_t od = 0; od < axes[0].out; ++od)
        for (int64_t oh = 0; oh < axes[1].out; ++oh)
          for (int64_t ow = 0; ow < axes[2].out; ++ow)
            f(p, in + p * in_plane, at++, od, oh, ow);
    }
  });
}

/// Calls `f(type_tag<C>{})` with the type that a MaxPool operand is compared in.
template <class F>
void visit_maximum(dtype type, F&& f) {
  if (type == dtype::int8)
    return f(type_tag<int8_t>{});
  if (type == dtype::uint8)
    return f(type_tag<uint8_t>{});
  visit_compute(type, std::forward<F>(f));
}

template <class C>
constexpr C lowest = std::numeric_limits<C>::has_infinity ? -std::numeric_limits<C>::infinity()
                                                          : std::numeric_limits<C>::lowest();

/// Returns the index that MaxPool's second output states for `offset` in plane `p`: columns first if storage_order is
/// 1.
int64_t pool_index(const window_axes& axes, int64_t p, int64_t offset, bool columns_first) {
  const auto& [d, h, w] = axes;
  const int64_t plane = p * d.in * h.in * w.in;
  if (!columns_first)
    return plane + offset;
  const int64_t iw = offset % w.in, ih = offset / w.in % h.in, id = offset / w.in / h.in;
  return plane + (iw * h.in + ih) * d.in + id;
}

void max_pool(kernel_context& c) {
  const const_view& x = c.input(0);
  const window_axes axes = bind_window(parse_pool(c.attrs(), x.dims.size()), x.dims.subspan(2));
  const bool columns_first = c.attrs().integer("storage_order", 0) != 0;
  int64_t* indices = c.has_output(1) ? c.output(1).as<int64_t>() : nullptr;
  visit_maximum(x.type, [&]<class C>(type_tag<C>) {
    const read_as<C> in(x);
    write_as<C> out(c.output(0));
    for_outputs(x, axes, in.data(), [&](int64_t p, const C* plane, int64_t at, int64_t od, int64_t oh, int64_t ow) {
      C best = lowest<C>;
      int64_t where = -1;
      for_taps(axes, od, oh, ow, plane, [&](int64_t offset, C value) {
        if (where < 0 || value > best || value != value) { // NaN wins
          best = value;
          where = offset;
        }
      });
      out[at] = best;
      if (indices)
        indices[at] = pool_index(axes, p, std::max<int64_t>(where, 0), columns_first);
    });
    out.commit();
  });
}

/// Returns how many taps of output `o` are in the input or its padding: a double, because the product over three axes
/// may not fit 64 bits.
double padded_taps(const window_axis& a, int64_t o) {
  const int64_t room = a.in + a.pad_end - a.start(o);
  return static_cast<double>(std::max<int64_t>(0, std::min(a.kernel, (room + a.dilation - 1) / a.dilation)));
}

void infer_masked_pool(infer_context& c) {
  infer_pool(c);
  const symbolic_shape &x = c.dims(0), &mask = c.dims(1);
  if (c.type(1) != dtype::int32 || mask.size() != x.size())
    fail(errc::invalid_model, "a mask of {} and shape {} for an input of shape {}; int32 and the same rank are needed",
         to_string(c.type(1)), to_string(mask), to_string(x));
  for (size_t i = 2; i < x.size(); ++i)
    require_same(mask[i], x[i], "a spatial size of mask and input");
}

/// Returns the largest element that a masked window has in one plane; `first_counts`: the plane's first one, whatever
/// its mask.
float masked_maximum(const window_axes& axes, const std::array<int64_t, 3>& at, const float* plane, const int32_t* mask,
                     bool first_counts) {
  const auto& [d, h, w] = axes;
  float most = std::numeric_limits<float>::lowest();
  for (int64_t td = d.first_tap(at[0]); td < d.last_tap(at[0]); ++td)
    for (int64_t th = h.first_tap(at[1]); th < h.last_tap(at[1]); ++th) {
      const int64_t line = ((d.start(at[0]) + td * d.dilation) * h.in + h.start(at[1]) + th * h.dilation) * w.in;
      for (int64_t tw = w.first_tap(at[2]); tw < w.last_tap(at[2]); ++tw) {
        const int64_t offset = line + w.start(at[2]) + tw * w.dilation;
        if (mask[offset] == 0 && !(first_counts && offset == 0))
          break;
        most = std::max(most, plane[offset]);
      }
    }
  return most;
}

void masked_max_pool(kernel_context& c) {
  const const_view &x = c.input(0), &mask = c.input(1);
  const window_axes axes = bind_window(parse_pool(c.attrs(), x.dims.size()), x.dims.subspan(2));
  const int64_t plane = volume(x.dims.subspan(2)), masks = mask.dims[0] * mask.dims[1];
  if (!std::equal(x.dims.begin() + 2, x.dims.end(), mask.dims.begin() + 2, mask.dims.end()) ||
      (masks == 0 && x.size() > 0))
    fail(errc::invalid_input, "a mask of shape {} is none for an input of shape {}", to_string(mask.dims),
         to_string(x.dims));
  auto* y = c.output(0).as<float>();
  const auto* of = mask.as<int32_t>();
  const bool first_counts = x.dims.size() > 3;
  for_outputs(x, axes, x.as<float>(), [&](int64_t p, const float* in, int64_t at, int64_t od, int64_t oh, int64_t ow) {
    y[at] = masked_maximum(axes, {od, oh, ow}, in, of + p * plane % masks, first_counts);
  });
}

void average_pool(kernel_context& c) {
  const const_view& x = c.input(0);
  const window_axes axes = bind_window(parse_pool(c.attrs(), x.dims.size()), x.dims.subspan(2));
  const bool include_pad = c.attrs().integer("count_include_pad", 0) != 0;
  visit_compute(x.type, [&]<class C>(type_tag<C>) {
    const read_as<C> in(x);
    write_as<C> out(c.output(0));
    for_outputs(x, axes, in.data(), [&](int64_t, const C* plane, int64_t at, int64_t od, int64_t oh, int64_t ow) {
      double sum = 0;
      int64_t count = 0;
      for_taps(axes, od, oh, ow, plane, [&](int64_t, C value) {
        sum += value;
        ++count;
      });
      const double taps = include_pad ? padded_taps(axes[0], od) * padded_taps(axes[1], oh) * padded_taps(axes[2], ow)
                                      : static_cast<double>(count);
      out[at] = taps > 0 ? static_cast<C>(sum / taps) : C(0);
    });
    out.commit();
  });
}

void lp_pool(kernel_context& c) {
  const const_view& x = c.input(0);
  const window_axes axes = bind_window(parse_pool(c.attrs(), x.dims.size()), x.dims.subspan(2));
  const double p = norm_order(c.attrs());
  visit_compute(x.type, [&]<class C>(type_tag<C>) {
    const read_as<C> in(x);
    write_as<C> out(c.output(0));
    for_outputs(x, axes, in.data(), [&](int64_t, const C* plane, int64_t at, int64_t od, int64_t oh, int64_t ow) {
      double sum = 0;
      for_taps(axes, od, oh, ow, plane, [&](int64_t, C value) { sum += std::pow(std::abs(double(value)), p); });
      out[at] = static_cast<C>(std::pow(sum, 1 / p));
    });
    out.commit();
  });
}

/// Reduces every plane of [N, C, spatial…] to one element: `finish(sum of step(acc, x), elements)`.
template <class Step, class Finish>
void global_pool(kernel_context& c, double init, Step step, Finish finish) {
  const const_view& x = c.input(0);
  const int64_t plane = volume(x.dims.subspan(2));
  visit_compute(x.type, [&]<class C>(type_tag<C>) {
    const read_as<C> in(x);
    write_as<C> out(c.output(0));
    const int64_t grain = std::max<int64_t>(1, elementwise_grain / std::max<int64_t>(1, plane));
    parallel_for(x.dims[0] * x.dims[1], grain, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        double acc = init;
        for (int64_t i = 0; i < plane; ++i)
          acc = step(acc, static_cast<double>(in[p * plane + i]));
        out[p] = static_cast<C>(finish(acc, static_cast<double>(plane)));
      }
    });
    out.commit();
  });
}

void global_average_pool(kernel_context& c) {
  global_pool(
      c, 0, [](double acc, double x) { return acc + x; }, [](double acc, double count) { return acc / count; });
}

void global_max_pool(kernel_context& c) {
  global_pool(
      c, lowest<double>, [](double acc, double x) { return x > acc || x != x ? x : acc; },
      [](double acc, double) { return acc; });
}

void global_lp_pool(kernel_context& c) {
  const double p = norm_order(c.attrs());
  global_pool(
      c, 0, [p](double acc, double x) { return acc + std::pow(std::abs(x), p); },
      [p](double acc, double) { return std::pow(acc, 1 / p); });
}

/// One operation a tap.
op_cost pool_cost(const attributes& attrs, const call_shapes& call) {
  double taps = 1;
  for (int64_t size : attrs.integers("kernel_shape", {}))
    taps *= static_cast<double>(size);
  return {taps * static_cast<double>(volume(call.outputs[0])), operand_bytes(call)};
}

void pool_axes(call_axes& a) {
  if (a.call().has_output(1))
    a.refuse("returns indices that count through the whole batch");
  axes::planes(a);
  axes::windows(a, parse_pool(a.call().attrs(), a.call().rank(0)));
}

constexpr op_def pool_row(std::string_view name, void (*reference)(kernel_context&),
                          layout_support layouts = layout_support::plain) {
  const bool global = name.starts_with("Global");
  return op_row(name, 1, global ? infer_global : infer_pool, reference,
                {.types = types::floats,
                 .layouts = layouts,
                 .cost = global ? cost_per_input<1> : pool_cost,
                 .axes = global ? axes::planes : pool_axes});
}

constexpr op_def max_pool_row() {
  op_def def = pool_row("MaxPool", max_pool, layout_support::spatial);
  def.max_outputs = 2;
  def.types = types::floats | set_of(dtype::int8, dtype::uint8);
  return def;
}

constexpr auto pool_rows = std::to_array<op_def>({
    max_pool_row(),
    op_row("MaxpoolWithMask", 1, infer_masked_pool, masked_max_pool,
           {.domain = microsoft,
            .inputs = {2, 2},
            .types = set_of(dtype::float32),
            .cost = pool_cost,
            .mixes = "takes masks that count through the whole batch"}),
    pool_row("AveragePool", average_pool, layout_support::spatial),
    pool_row("LpPool", lp_pool),
    pool_row("GlobalAveragePool", global_average_pool, layout_support::spatial),
    pool_row("GlobalMaxPool", global_max_pool),
    pool_row("GlobalLpPool", global_lp_pool),
});

} // namespace

extern constinit const op_table onnx_pool_ops = pool_rows;

} // namespace troupe
