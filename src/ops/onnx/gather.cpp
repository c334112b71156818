// Gather, GatherElements, GatherND: elements picked by index. Negative indices count from the end; an index out of
// bounds is an error of the run that names index and bound.
#include "base/parallel.hpp"
#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/movement.hpp"
#include "ops/operand.hpp"
#include "ops/strided_copy.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// Elements a thread should move before another one pays.
constexpr int64_t gather_grain = 16 * 1024;

void infer_gather(infer_context& c) {
  const symbolic_shape &data = c.dims(0), &indices = c.dims(1);
  const auto axis = static_cast<int64_t>(c.axis("axis", 0, data.size()));
  symbolic_shape out(data.begin(), data.begin() + axis);
  out.insert(out.end(), indices.begin(), indices.end());
  out.insert(out.end(), data.begin() + axis + 1, data.end());
  set_moved(c, {std::move(out)});
}

void gather_kernel(kernel_context& c) {
  const const_view& data = c.input(0);
  const size_t axis = normalize_axis(c.attrs().integer("axis", 0), data.dims.size());
  const int64_t outer = product(data.dims, 0, axis), bound = data.dims[axis];
  const int64_t run = product(data.dims, axis + 1, data.dims.size());
  std::vector<int64_t> indices = to_int64(c.input(1));
  for (int64_t& index : indices)
    index = checked_index(index, bound);
  const auto picks = static_cast<int64_t>(indices.size());
  visit_movable(data.type, [&]<class T>(type_tag<T>) {
    const T* x = data.as<T>();
    T* y = c.output(0).as<T>();
    parallel_for(
        outer * picks, std::max<int64_t>(1, gather_grain / std::max<int64_t>(run, 1)), [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i)
            copy_run(x + (i / picks * bound + indices[static_cast<size_t>(i % picks)]) * run, y + i * run, run);
        });
  });
}

void infer_gather_elements(infer_context& c) {
  if (c.rank(0) != c.rank(1))
    fail(errc::invalid_model, "data of rank {} and indices of rank {} differ", c.rank(0), c.rank(1));
  const size_t axis = c.axis("axis", 0, c.rank(0));
  const symbolic_shape &data = c.dims(0), &indices = c.dims(1);
  for (size_t i = 0; i < data.size(); ++i)
    if (i != axis && indices[i].is_constant() && data[i].is_constant() && indices[i].constant() > data[i].constant())
      fail(errc::invalid_model, "indices {} reach beyond data {}", to_string(indices), to_string(data));
  set_moved(c, {indices});
}

/// Throws if an axis other than `axis` of the indices is longer than the data's.
void check_index_dims(std::span<const int64_t> data, std::span<const int64_t> indices, size_t axis) {
  for (size_t i = 0; i < data.size(); ++i)
    if (i != axis && indices[i] > data[i])
      fail(errc::invalid_input, "indices of shape {} reach beyond data of shape {}", to_string(indices),
           to_string(data));
}

void gather_elements_kernel(kernel_context& c) {
  const const_view& data = c.input(0);
  const auto dims = c.input(1).dims;
  const size_t axis = normalize_axis(c.attrs().integer("axis", 0), data.dims.size());
  check_index_dims(data.dims, dims, axis);
  const shape strides = strides_of(data.dims);
  const int64_t step = strides[axis], bound = data.dims[axis];
  std::vector<copy_axis> axes;
  for (size_t i = 0; i < dims.size(); ++i)
    axes.push_back({dims[i], i == axis ? 0 : strides[i], 0});
  const std::vector<int64_t> indices = to_int64(c.input(1));
  visit_movable(data.type, [&]<class T>(type_tag<T>) {
    const T* x = data.as<T>();
    T* y = c.output(0).as<T>();
    parallel_for(static_cast<int64_t>(indices.size()), gather_grain, [&](int64_t begin, int64_t end) {
      int64_t i = begin;
      walk(axes, begin, end, [&](int64_t from, int64_t) {
        y[i] = x[from + checked_index(indices[static_cast<size_t>(i)], bound) * step];
        ++i;
      });
    });
  });
}

/// Length of the index tuples: the last dim of the indices.
size_t tuple_length(int64_t length, size_t batch_dims, size_t data_rank, size_t indices_rank) {
  if (batch_dims >= indices_rank || length < 0 || batch_dims + static_cast<size_t>(length) > data_rank)
    fail(errc::invalid_model, "GatherND takes tuples of {} indices after {} batch dims from data of rank {}", length,
         batch_dims, data_rank);
  return static_cast<size_t>(length);
}

size_t batch_dims_of(const attributes& attrs) {
  const int64_t batch_dims = attrs.integer("batch_dims", 0);
  if (batch_dims < 0)
    fail(errc::invalid_model, "batch_dims is {}", batch_dims);
  return static_cast<size_t>(batch_dims);
}

void infer_gather_nd(infer_context& c) {
  const symbolic_shape &data = c.dims(0), &indices = c.dims(1);
  if (indices.empty() || !indices.back().is_constant())
    fail(errc::unsupported, "GatherND needs indices whose last dim is known, not {}", to_string(indices));
  const size_t batch = batch_dims_of(c.attrs());
  const size_t length = tuple_length(indices.back().constant(), batch, data.size(), indices.size());
  require_same_dims(std::span(data).first(batch), std::span(indices).first(batch), "batch dims of data and indices");
  symbolic_shape out(indices.begin(), indices.end() - 1);
  out.insert(out.end(), data.begin() + static_cast<int64_t>(batch + length), data.end());
  set_moved(c, {std::move(out)});
}

void gather_nd_kernel(kernel_context& c) {
  const const_view &data = c.input(0), &indices = c.input(1);
  const size_t batch = batch_dims_of(c.attrs());
  const size_t length = tuple_length(indices.dims.back(), batch, data.dims.size(), indices.dims.size());
  const int64_t tuples = product(indices.dims, 0, indices.dims.size() - 1);
  const int64_t batches = product(data.dims, 0, batch), run = product(data.dims, batch + length, data.dims.size());
  if (!std::equal(data.dims.begin(), data.dims.begin() + static_cast<int64_t>(batch), indices.dims.begin()))
    fail(errc::invalid_input, "batch dims of data {} and indices {} differ", to_string(data.dims),
         to_string(indices.dims));
  if (tuples == 0)
    return;
  const int64_t per_batch = tuples / batches, data_batch = product(data.dims, batch, data.dims.size());
  const shape strides = strides_of(data.dims);
  const std::vector<int64_t> numbers = to_int64(indices);
  const auto offset_of = [&](int64_t tuple) {
    int64_t offset = tuple / per_batch * data_batch;
    for (size_t i = 0; i < length; ++i) {
      const int64_t index = numbers[static_cast<size_t>(tuple) * length + i];
      offset += checked_index(index, data.dims[batch + i]) * strides[batch + i];
    }
    return offset;
  };
  visit_movable(data.type, [&]<class T>(type_tag<T>) {
    T* y = c.output(0).as<T>();
    parallel_for(tuples, std::max<int64_t>(1, gather_grain / std::max<int64_t>(run, 1)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i)
                     copy_run(data.as<T>() + offset_of(i), y + i * run, run);
                 });
  });
}

void gather_axes_of(call_axes& a) {
  const size_t rank = a.call().rank(0), indices = a.call().rank(1), picked = a.call().axis("axis", 0, rank);
  for (size_t axis = 0; axis < rank; ++axis)
    if (axis != picked)
      a.map({{0, axis}}, axis < picked ? axis : axis + indices - 1);
  for (size_t axis = 0; axis < indices; ++axis)
    a.map({{1, axis}}, picked + axis);
}

void gather_elements_axes(call_axes& a) {
  const infer_context& c = a.call();
  const size_t picked = c.axis("axis", 0, c.rank(0));
  for (size_t axis = 0; axis < c.rank(0); ++axis)
    if (axis == picked)
      a.map({{1, axis}}, axis);
    else if (c.dims(0)[axis] == c.dims(1)[axis])
      a.map({{0, axis}, {1, axis}}, axis);
}

/// Data and indices share the batch dims; then come the other dims of the tuples, then those of what a tuple picks.
void gather_nd_axes(call_axes& a) {
  const infer_context& c = a.call();
  const size_t batch = batch_dims_of(c.attrs()), last = c.rank(1) - 1;
  if (!c.dims(1).back().is_constant())
    a.refuse("has tuples of unknown size");
  const size_t slices = batch + tuple_length(c.dims(1).back().constant(), batch, c.rank(0), c.rank(1));
  for (size_t axis = 0; axis < batch; ++axis)
    a.map({{0, axis}, {1, axis}}, axis);
  for (size_t axis = batch; axis < last; ++axis)
    a.map({{1, axis}}, axis);
  for (size_t axis = slices; axis < c.rank(0); ++axis)
    a.map({{0, axis}}, last + axis - slices);
}

constexpr op_def gather_row(std::string_view name, int64_t since, void (*infer)(infer_context&),
                            void (*reference)(kernel_context&), void (*axes)(call_axes&)) {
  return op_row(
      name, since, infer, reference,
      {.inputs = {2, 2}, .types = movable_types, .axes = axes, .mixes = "picks elements by their position along"});
}

constexpr auto gather_rows = std::to_array<op_def>({
    gather_row("Gather", 1, infer_gather, gather_kernel, gather_axes_of),
    gather_row("GatherElements", 11, infer_gather_elements, gather_elements_kernel, gather_elements_axes),
    gather_row("GatherND", 11, infer_gather_nd, gather_nd_kernel, gather_nd_axes),
});

} // namespace

extern constinit const op_table onnx_gather_ops = gather_rows;

} // namespace troupe
