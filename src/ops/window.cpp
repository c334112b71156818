#include "ops/window.hpp"

#include "ops/infer.hpp"
#include "ops/operand.hpp"

#include <algorithm>

namespace troupe {
namespace {

constexpr int64_t limit = int64_t{1} << 31;

/// Returns list attribute `name`, `count` elements of `otherwise` where it is absent, each in [least, 2^31).
std::vector<int64_t> sizes(const attributes& attrs, std::string_view name, size_t count, int64_t otherwise,
                           int64_t least) {
  std::vector<int64_t> values = attrs.integers(name, std::vector<int64_t>(count, otherwise));
  if (values.empty()) // exporters write empty lists for "default"
    values.assign(count, otherwise);
  if (values.size() != count)
    fail(errc::invalid_model, "attribute '{}' has {} elements, but {} are needed", name, values.size(), count);
  for (int64_t value : values)
    if (value < least || value >= limit)
      fail(errc::invalid_model, "attribute '{}' holds {}, which is not in [{}, 2^31)", name, value, least);
  return values;
}

} // namespace

auto_pad parse_auto_pad(const attributes& attrs) {
  if (attrs.text("auto_pad", "").empty())
    return auto_pad::notset;
  return word_as<auto_pad>(attrs, "auto_pad", "NOTSET", {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"});
}

window_spec parse_window(const attributes& attrs, std::vector<int64_t> kernel) {
  const size_t rank = kernel.size();
  if (rank == 0 || rank > 3)
    fail(errc::unsupported, "{} spatial axes; 1, 2 and 3 are supported", rank);
  for (int64_t size : kernel)
    if (size < 1 || size >= limit)
      fail(errc::invalid_model, "a kernel size is {}, which is not in [1, 2^31)", size);
  window_spec spec;
  spec.kernel = std::move(kernel);
  spec.strides = sizes(attrs, "strides", rank, 1, 1);
  spec.dilations = sizes(attrs, "dilations", rank, 1, 1);
  spec.pads = sizes(attrs, "pads", 2 * rank, 0, 0);
  spec.mode = parse_auto_pad(attrs);
  spec.ceil = attrs.integer("ceil_mode", 0) != 0;
  return spec;
}

window_spec parse_filter(const attributes& attrs, std::span<const dim> x, std::span<const dim> w) {
  require_rank(x.size(), 3, "the input");
  if (w.size() != x.size())
    fail(errc::invalid_model, "the input has rank {}, the weights {}", x.size(), w.size());
  if (!is_constant(w))
    fail(errc::unsupported, "the weights' shape {} is symbolic", to_string(w));
  std::vector<int64_t> kernel = constants(w.subspan(2));
  if (const auto stated = attrs.integers("kernel_shape", {}); !stated.empty() && stated != kernel)
    fail(errc::invalid_model, "kernel_shape {} is not the weights' {}", to_string(stated), to_string(kernel));
  return parse_window(attrs, std::move(kernel));
}

dim window_output(const window_spec& spec, size_t axis, const dim& in) {
  const int64_t stride = spec.strides[axis];
  if (spec.mode == auto_pad::same_upper || spec.mode == auto_pad::same_lower)
    return ceil_div(in, stride);
  const bool padded = spec.mode == auto_pad::notset;
  const int64_t begin = padded ? spec.pads[axis] : 0, end = padded ? spec.pads[axis + spec.rank()] : 0;
  const dim room = in + dim(begin + end) - dim(spec.extent(axis));
  // Rounding up, a pool has a last window that is only begun, even if it is the first.
  const bool rounds_up = spec.ceil && padded;
  if (room.is_constant() && (rounds_up ? ceil_div(room, stride) : room).constant() < 0)
    fail(errc::invalid_model, "spatial axis {}: the kernel covers {} elements, but the padded input has {}", axis,
         spec.extent(axis), in.constant() + begin + end);
  if (!rounds_up)
    return floor_div(room, stride) + 1;
  // A window that would start in the padding after the input is dropped.
  return min(ceil_div(room, stride), floor_div(in + dim(begin - 1), stride)) + 1;
}

int64_t window_axis::first_tap(int64_t o) const {
  const int64_t from = start(o);
  return from >= 0 ? 0 : std::min(kernel, (-from + dilation - 1) / dilation);
}

int64_t window_axis::last_tap(int64_t o) const {
  const int64_t room = in - start(o); // elements from tap 0 to the end of the input
  return std::max(first_tap(o), room <= 0 ? 0 : std::min(kernel, (room + dilation - 1) / dilation));
}

double conv_flops(const shape& weights, const shape& positions) {
  const int64_t filter = weights.empty() || weights[0] == 0 ? 0 : volume(weights) / weights[0];
  return 2 * static_cast<double>(filter) * static_cast<double>(volume(positions));
}

window_axes bind_window(const window_spec& spec, std::span<const int64_t> spatial) {
  if (spatial.size() != spec.rank())
    fail(errc::invalid_model, "the kernel has {} spatial axes, the input {}", spec.rank(), spatial.size());
  window_axes axes;
  for (size_t i = 0; i < spec.rank(); ++i) {
    window_axis& a = axes[3 - spec.rank() + i];
    if (spatial[i] >= limit)
      fail(errc::unsupported, "a spatial size of {} is too large", spatial[i]);
    a.in = spatial[i];
    a.out = window_output(spec, i, dim(a.in)).constant();
    a.kernel = spec.kernel[i];
    a.stride = spec.strides[i];
    a.dilation = spec.dilations[i];
    if (spec.mode == auto_pad::notset) {
      a.pad_begin = spec.pads[i];
      a.pad_end = spec.pads[i + spec.rank()];
    } else if (spec.mode != auto_pad::valid) {
      const int64_t total = std::max<int64_t>(0, (a.out - 1) * a.stride + spec.extent(i) - a.in);
      a.pad_begin = spec.mode == auto_pad::same_upper ? total / 2 : total - total / 2;
      a.pad_end = total - a.pad_begin;
    }
  }
  return axes;
}

} // namespace troupe
