// ScatterElements, ScatterND, Scatter and TensorScatter: a copy of the data in which elements picked by index are
// replaced by, or combined with, updates. Updates run in order: if indices repeat without a reduction, the last one
// wins.
#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/infer.hpp"
#include "ops/movement.hpp"
#include "ops/operand.hpp"
#include "ops/strided_copy.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace troupe {
namespace {

/// Arithmetic of 16-bit floats is done in float and rounded once; integers wrap around.
template <class T>
using wide = std::conditional_t<std::is_integral_v<T>, uint64_t, std::conditional_t<sizeof(T) == 2, float, T>>;

/// Calls `apply(tag, f)` with the element type to move or compute with, and f(old, update) for the reduction.
template <class F>
void visit_reduction(const std::string& reduction, dtype type, F&& apply) {
  if (reduction == "none") {
    visit_movable(type, [&](auto tag) { apply(tag, [](const auto&, const auto& update) { return update; }); });
    return;
  }
  const auto numeric = [&](auto f) { visit_numeric(type, [&](auto tag) { apply(tag, f); }); };
  if (reduction == "add")
    numeric([](auto a, auto b) { return static_cast<decltype(a)>(wide<decltype(a)>(a) + wide<decltype(a)>(b)); });
  else if (reduction == "mul")
    numeric([](auto a, auto b) { return static_cast<decltype(a)>(wide<decltype(a)>(a) * wide<decltype(a)>(b)); });
  else if (reduction == "max")
    numeric([](auto a, auto b) { return a < b || b != b ? b : a; });
  else // min
    numeric([](auto a, auto b) { return b < a || b != b ? b : a; });
}

std::string reduction_of(const attributes& attrs) {
  return word_of(attrs, "reduction", "none", {"none", "add", "mul", "max", "min"});
}

/// Throws if indices are known to reach beyond the data in another axis than that of the indices.
void require_reach(std::span<const dim> indices, std::span<const dim> data, size_t axis) {
  for (size_t i = 0; i < data.size(); ++i)
    if (i != axis && indices[i].is_constant() && data[i].is_constant() && indices[i].constant() > data[i].constant())
      fail(errc::invalid_model, "indices {} reach beyond data {}", to_string(indices), to_string(data));
}

void infer_scatter_elements(infer_context& c) {
  reduction_of(c.attrs());
  if (c.rank(0) != c.rank(1) || c.rank(1) != c.rank(2))
    fail(errc::invalid_model, "ranks of data {}, indices {} and updates {} differ", c.rank(0), c.rank(1), c.rank(2));
  require_same_dims(c.dims(1), c.dims(2), "indices and updates");
  require_reach(c.dims(1), c.dims(0), c.axis("axis", 0, c.rank(0)));
  c.set_output(0, c.type(0), c.dims(0));
}

void scatter_elements_kernel(kernel_context& c) {
  copy_all(c.input(0), c.output(0));
  const mutable_view& out = c.output(0);
  const auto dims = c.input(1).dims;
  const size_t axis = normalize_axis(c.attrs().integer("axis", 0), out.dims.size());
  if (!std::equal(dims.begin(), dims.end(), c.input(2).dims.begin()))
    fail(errc::invalid_input, "indices {} and updates {} differ", to_string(dims), to_string(c.input(2).dims));
  const shape strides = strides_of(out.dims);
  std::vector<copy_axis> axes;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i != axis && dims[i] > out.dims[i])
      fail(errc::invalid_input, "indices {} reach beyond data {}", to_string(dims), to_string(out.dims));
    axes.push_back({dims[i], 0, i == axis ? 0 : strides[i]});
  }
  const std::vector<int64_t> indices = to_int64(c.input(1));
  visit_reduction(reduction_of(c.attrs()), out.type, [&]<class T>(type_tag<T>, auto combine) {
    const T* updates = c.input(2).as<T>();
    T* y = out.as<T>();
    size_t i = 0;
    walk(axes, 0, static_cast<int64_t>(indices.size()), [&](int64_t, int64_t to) {
      T& element = y[to + checked_index(indices[i], out.dims[axis]) * strides[axis]];
      element = combine(element, updates[i]);
      ++i;
    });
  });
}

size_t tuple_length(int64_t length, size_t data_rank) {
  if (length < 0 || static_cast<size_t>(length) > data_rank)
    fail(errc::invalid_model, "ScatterND has tuples of {} indices for data of rank {}", length, data_rank);
  return static_cast<size_t>(length);
}

void infer_scatter_nd(infer_context& c) {
  reduction_of(c.attrs());
  const symbolic_shape &data = c.dims(0), &indices = c.dims(1);
  if (indices.empty())
    fail(errc::invalid_model, "the indices of ScatterND have rank 0");
  if (indices.back().is_constant()) {
    const size_t length = tuple_length(indices.back().constant(), data.size());
    require_same(volume(c.dims(2)),
                 volume(std::span(indices).first(indices.size() - 1)) * volume(std::span(data).subspan(length)),
                 "elements of the updates and what indices and data take");
  }
  c.set_output(0, c.type(0), c.dims(0));
}

void scatter_nd_kernel(kernel_context& c) {
  copy_all(c.input(0), c.output(0));
  const mutable_view& out = c.output(0);
  const auto dims = c.input(1).dims;
  const size_t length = tuple_length(dims.back(), out.dims.size());
  const int64_t tuples = product(dims, 0, dims.size() - 1), run = product(out.dims, length, out.dims.size());
  if (c.input(2).size() != tuples * run)
    fail(errc::invalid_input, "updates of shape {} do not fit indices {} into data {}", to_string(c.input(2).dims),
         to_string(dims), to_string(out.dims));
  const shape strides = strides_of(out.dims);
  const std::vector<int64_t> numbers = to_int64(c.input(1));
  visit_reduction(reduction_of(c.attrs()), out.type, [&]<class T>(type_tag<T>, auto combine) {
    const T* updates = c.input(2).as<T>();
    for (int64_t tuple = 0; tuple < tuples; ++tuple) {
      int64_t offset = 0;
      for (size_t i = 0; i < length; ++i)
        offset += checked_index(numbers[static_cast<size_t>(tuple) * length + i], out.dims[i]) * strides[i];
      T* y = out.as<T>() + offset;
      for (int64_t i = 0; i < run; ++i)
        y[i] = combine(y[i], updates[tuple * run + i]);
    }
  });
}

/// Whether an update that reaches beyond the cache's end goes on at its beginning.
bool wraps_around(const attributes& attrs) {
  return word_of(attrs, "mode", "linear", {"linear", "circular"}) == "circular";
}

void infer_tensor_scatter(infer_context& c) {
  wraps_around(c.attrs());
  if (c.rank(0) != c.rank(1) || c.rank(0) < 2)
    fail(errc::invalid_model, "cache of rank {} and update of rank {}", c.rank(0), c.rank(1));
  const size_t axis = c.axis("axis", -2, c.rank(0));
  if (axis == 0)
    fail(errc::invalid_model, "TensorScatter cannot write along the batch axis");
  symbolic_shape written = c.dims(1);
  written[axis] = c.dims(0)[axis];
  require_same_dims(written, c.dims(0), "the update and the cache, along other axes");
  if (c.has_input(2))
    require_same_dims(c.dims(2), std::span(&c.dims(0)[0], 1), "write indices and the batch");
  c.set_output(0, c.type(0), c.dims(0));
}

/// Sets elements to 0.
void clear(const mutable_view& out, int64_t first, int64_t count) {
  if (!(types::fixed_size & set_of(out.type)))
    fail(errc::unsupported, "what is after an update of {} cannot be cleared", to_string(out.type));
  std::memset(element_at(out.type, out.data, first), 0, static_cast<size_t>(count * bits_of(out.type) / 8));
}

/// y[b, …, (start_b + i) mod n or not, …] = update[b, …, i, …]; with clear_after what is after a linear update is 0.
void tensor_scatter_kernel(kernel_context& c) {
  copy_all(c.input(0), c.output(0));
  const mutable_view& out = c.output(0);
  const const_view& update = c.input(1);
  const size_t axis = normalize_axis(c.attrs().integer("axis", -2), out.dims.size());
  for (size_t i = 0; i < out.dims.size(); ++i)
    if (i != axis ? update.dims[i] != out.dims[i] : update.dims[i] > out.dims[i])
      fail(errc::invalid_input, "update {} does not fit cache {}", to_string(update.dims), to_string(out.dims));
  const bool wraps = wraps_around(c.attrs()), clears = !wraps && c.attrs().integer("clear_after", 0) != 0;
  const int64_t batches = out.dims[0], middle = product(out.dims, 1, axis), n = out.dims[axis], m = update.dims[axis];
  const int64_t inner = product(out.dims, axis + 1, out.dims.size());
  std::vector<int64_t> starts(static_cast<size_t>(batches), 0);
  if (c.has_input(2))
    starts = to_int64(c.input(2));
  if (static_cast<int64_t>(starts.size()) != batches)
    fail(errc::invalid_input, "TensorScatter has {} write indices for a batch of {}", starts.size(), batches);
  for (int64_t b = 0; b < batches; ++b) {
    const int64_t start = starts[static_cast<size_t>(b)];
    for (int64_t i = 0; i < m; ++i) {
      if (start < 0 || start >= std::max<int64_t>(n, 1) || (!wraps && start > n - m))
        fail(errc::invalid_input, "write index {} with {} updates leaves a cache of {}", start, m, n);
      copy_strided(out.type, element_at(out.type, update.data, (b * middle * m + i) * inner),
                   element_at(out.type, out.data, (b * middle * n + (start + i) % n) * inner),
                   {{middle, m * inner, n * inner}, {inner, 1, 1}});
    }
    for (int64_t line = b * middle; clears && m > 0 && line < (b + 1) * middle; ++line)
      clear(out, (line * n + start + m) * inner, (n - start - m) * inner);
  }
}

void scatter_elements_axes(call_axes& a) {
  const infer_context& c = a.call();
  const size_t replaced = c.axis("axis", 0, c.rank(0));
  for (size_t axis = 0; axis < c.rank(0); ++axis)
    if (axis != replaced && c.dims(0)[axis] == c.dims(1)[axis])
      a.map({{0, axis}, {1, axis}, {2, axis}}, axis);
}

/// The dims of what a tuple replaces.
void scatter_nd_axes(call_axes& a) {
  const infer_context& c = a.call();
  const size_t last = c.rank(1) - 1;
  if (!c.dims(1).back().is_constant())
    a.refuse("has tuples of unknown size");
  const size_t slices = tuple_length(c.dims(1).back().constant(), c.rank(0));
  for (size_t axis = slices; axis < c.rank(0); ++axis)
    a.map({{0, axis}, {2, last + axis - slices}}, axis);
}

/// Dim 0 is the batch, each with a position of its own to write to.
void tensor_scatter_axes(call_axes& a) {
  const size_t rank = a.call().rank(0), written = a.call().axis("axis", -2, rank);
  for (size_t axis = 0; axis < rank; ++axis)
    if (axis != written)
      a.map({{0, axis}, {1, axis}, {2, axis == 0 ? 0 : call_axes::nowhere}}, axis);
}

constexpr op_def scatter_row(std::string_view name, int64_t since, void (*infer)(infer_context&),
                             void (*reference)(kernel_context&), void (*axes)(call_axes&),
                             operand_range inputs = {3, 3}, int64_t until = op_def{}.until) {
  return op_row(
      name, since, infer, reference,
      {.until = until, .inputs = inputs, .types = movable_types, .axes = axes, .mixes = "replaces elements along"});
}

constexpr auto scatter_rows = std::to_array<op_def>({
    scatter_row("Scatter", 9, infer_scatter_elements, scatter_elements_kernel, scatter_elements_axes, {3, 3}, 10),
    scatter_row("ScatterElements", 11, infer_scatter_elements, scatter_elements_kernel, scatter_elements_axes),
    scatter_row("ScatterND", 11, infer_scatter_nd, scatter_nd_kernel, scatter_nd_axes),
    scatter_row("TensorScatter", 24, infer_tensor_scatter, tensor_scatter_kernel, tensor_scatter_axes, {2, 3}),
});

} // namespace

extern constinit const op_table onnx_scatter_ops = scatter_rows;

} // namespace troupe
