// Pad: y[i] = x[source(i - begin)] along every axis, where source(j) for j outside [0, d) is, by mode:
//   constant  the fill value        edge     the nearest element
//   reflect   mirrored without repeating the border (d ≥ 2, repeated when the pad is longer)      wrap     j modulo d
// Negative pads crop.
#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/infer.hpp"
#include "ops/movement.hpp"
#include "ops/onnx/axis_gather.hpp"
#include "ops/onnx/padding.hpp"
#include "ops/strided_copy.hpp"

namespace troupe {
namespace {

pad_mode mode_of(const attributes& attrs) {
  return word_as<pad_mode>(attrs, "mode", "constant", {"constant", "reflect", "edge", "wrap"});
}

/// Pads of all axes, begin and end, from the listed ones (those of `axes`, all if absent).
template <class T>
std::vector<std::pair<T, T>> all_pads(const std::vector<T>& listed, const std::optional<std::vector<int64_t>>& axes,
                                      size_t rank) {
  std::vector<size_t> where(rank);
  for (size_t i = 0; i < rank; ++i)
    where[i] = i;
  if (axes)
    where = normalize_axes(*axes, rank);
  if (listed.size() != 2 * where.size())
    fail(errc::invalid_model, "Pad has {} pads for {} axes", listed.size(), where.size());
  std::vector<std::pair<T, T>> pads(rank, {T(0), T(0)});
  for (size_t i = 0; i < where.size(); ++i)
    pads[where[i]] = {listed[i], listed[i + where.size()]};
  return pads;
}

void infer_pads(infer_context& c, const std::vector<dim>& listed, const std::optional<std::vector<int64_t>>& axes) {
  symbolic_shape out = c.dims(0);
  const auto pads = all_pads(listed, axes, out.size());
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = out[i] + pads[i].first + pads[i].second;
    if (out[i].is_constant() && out[i].constant() < 0)
      fail(errc::invalid_model, "Pad crops dim {} to {} elements", i, out[i].constant());
  }
  c.set_output(0, c.type(0), std::move(out));
}

void infer_pad_1(infer_context& c) {
  mode_of(c.attrs());
  const auto pads = c.attrs().integers(c.attrs().has("pads") ? "pads" : "paddings");
  infer_pads(c, {pads.begin(), pads.end()}, std::nullopt);
}

void infer_pad(infer_context& c) {
  mode_of(c.attrs()); // even if the pads are not known yet
  infer_pads(c, c.require_known(1), c.has_input(3) ? std::optional(c.require_constants(3)) : std::nullopt);
}

int64_t modulo(int64_t a, int64_t b) {
  return (a % b + b) % b;
}

/// The element of a dim `d` that position `j` shows; -1 for the fill value.
int64_t source(pad_mode mode, int64_t j, int64_t d) {
  if (j >= 0 && j < d)
    return j;
  if (mode == pad_mode::constant)
    return -1;
  if (d <= 0)
    fail(errc::invalid_input, "Pad cannot repeat elements of an empty dim");
  if (mode == pad_mode::edge)
    return j < 0 ? 0 : d - 1;
  if (mode == pad_mode::wrap)
    return modulo(j, d);
  if (d == 1)
    return 0;
  const int64_t k = modulo(j, 2 * (d - 1));
  return k < d ? k : 2 * (d - 1) - k;
}

/// For every axis and output index: the source index times the input's stride, -1 for the fill value.
std::vector<std::vector<int64_t>> offsets_of(kernel_context& c, const padding& p) {
  const shape strides = strides_of(c.input(0).dims);
  std::vector<std::vector<int64_t>> tables;
  for (size_t i = 0; i < p.before.size(); ++i) {
    auto& offsets = tables.emplace_back();
    for (int64_t j = 0; j < c.output(0).dims[i]; ++j) {
      const int64_t from = source(p.mode, j - p.before[i], p.in[i]);
      offsets.push_back(from < 0 ? -1 : (p.skipped[i] + from) * strides[i]);
    }
  }
  return tables;
}

} // namespace

padding padding_of(const kernel_context& c) {
  const auto in = c.input(0).dims, out = c.output(0).dims;
  const auto listed = c.has_input(1)          ? to_int64(c.input(1))
                      : c.attrs().has("pads") ? c.attrs().integers("pads")
                                              : c.attrs().integers("paddings");
  const auto pads = all_pads(listed, c.has_input(3) ? std::optional(to_int64(c.input(3))) : std::nullopt, in.size());
  padding p{mode_of(c.attrs()), {}, {}, {}};
  for (size_t i = 0; i < in.size(); ++i) {
    const auto [before, after] = pads[i];
    if (in[i] + before + after != out[i])
      fail(errc::invalid_input, "Pad of {} does not give {}", to_string(in), to_string(out));
    const bool wraps = p.mode == pad_mode::wrap;
    const int64_t first = wraps ? std::max<int64_t>(0, -before) : 0, last = wraps ? std::max<int64_t>(0, -after) : 0;
    p.before.push_back(before + first);
    p.in.push_back(in[i] - first - last);
    p.skipped.push_back(first);
  }
  return p;
}

tensor pad_fill(const kernel_context& c) {
  const dtype type = c.input(0).type;
  tensor fill(type, {});
  if (c.has_input(2)) {
    if (c.input(2).type != type || c.input(2).size() != 1)
      fail(errc::invalid_input, "Pad's fill value must be one {}", to_string(type));
    copy_strided(type, c.input(2).data, fill.mutable_data(), {});
  } else if (types::numeric & set_of(type)) {
    visit_numeric(type,
                  [&]<class T>(type_tag<T>) { *fill.mutable_data<T>() = static_cast<T>(c.attrs().real("value", 0)); });
  } else if (type != dtype::string) {
    std::memset(fill.mutable_data(), 0, static_cast<size_t>(fill.bytes()));
  }
  return fill;
}

namespace {

void pad_kernel(kernel_context& c) {
  const const_view& in = c.input(0);
  if (in.dims.empty())
    return copy_all(in, c.output(0));
  const auto offsets = offsets_of(c, padding_of(c));
  gather_axes(in.type, in.data, c.output(0).data, offsets, pad_fill(c).data());
}

std::optional<size_t> repeats_unpadded(const infer_context& c) {
  const auto stated = c.attrs().integers("pads", c.attrs().integers("paddings", {}));
  const bool none = c.has_input(1) ? c.is_filled(1, 0) : std::ranges::count(stated, 0) == std::ssize(stated);
  return none ? std::optional<size_t>(0) : std::nullopt;
}

void pad_axes(call_axes& a) {
  const infer_context& c = a.call();
  const auto listed = c.has_input(1) ? c.require_known(1)
                                     : to_symbolic(c.attrs().integers(c.attrs().has("pads") ? "pads" : "paddings"));
  const auto pads = all_pads(listed, c.has_input(3) ? std::optional(c.require_constants(3)) : std::nullopt, c.rank(0));
  for (size_t axis = 0; axis < pads.size(); ++axis)
    if (pads[axis].first.is(0) && pads[axis].second.is(0))
      a.map({{0, axis}}, axis);
}

constexpr auto pad_rows = std::to_array<op_def>({
    op_row("Pad", 1, infer_pad_1, pad_kernel,
           {.types = movable_types, .repeats = repeats_unpadded, .axes = pad_axes, .mixes = "pads"}),
    op_row("Pad", 11, infer_pad, pad_kernel,
           {.inputs = {2, 4},
            .types = movable_types,
            .host_inputs = 0b1010,
            .repeats = repeats_unpadded,
            .axes = pad_axes,
            .mixes = "pads"}),
});

} // namespace

extern constinit const op_table onnx_pad_ops = pad_rows;

} // namespace troupe
