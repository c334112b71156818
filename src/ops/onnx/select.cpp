// Elements chosen by value: Compress, NonZero, Unique (their output sizes depend on the data), OneHot, Trilu and
// ReverseSequence.
#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/movement.hpp"
#include "ops/operand.hpp"
#include "ops/strided_copy.hpp"

#include <algorithm>
#include <numeric>

namespace troupe {
namespace {

/// Axis of Compress and Unique; nullopt if they work on the flattened input.
std::optional<size_t> optional_axis(const attributes& attrs, size_t rank) {
  if (!attrs.has("axis"))
    return std::nullopt;
  return normalize_axis(attrs.integer("axis"), rank);
}

void infer_compress(infer_context& c) {
  if (c.type(1) != dtype::boolean || c.rank(1) != 1)
    fail(errc::invalid_model, "the condition of Compress must be a vector of booleans");
  const auto axis = optional_axis(c.attrs(), c.rank(0));
  symbolic_shape out = axis ? c.dims(0) : symbolic_shape{1};
  out[axis.value_or(0)] = c.data_dependent(0, axis.value_or(0));
  c.set_output(0, c.type(0), std::move(out));
}

void compress_kernel(kernel_context& c) {
  const const_view &in = c.input(0), &condition = c.input(1);
  const auto axis = optional_axis(c.attrs(), in.dims.size());
  shape dims = axis ? shape(in.dims.begin(), in.dims.end()) : shape{in.size()};
  const size_t along = axis.value_or(0);
  std::vector<int64_t> picks;
  for (int64_t i = 0; i < condition.size(); ++i)
    if (condition.as<uint8_t>()[i])
      picks.push_back(i);
  if (!picks.empty())
    checked_index(picks.back(), dims[along]);
  const int64_t outer = product(dims, 0, along), bound = dims[along], run = product(dims, along + 1, dims.size());
  dims[along] = static_cast<int64_t>(picks.size());
  const mutable_view out = output_of(c, 0, dims);
  for (size_t i = 0; i < picks.size(); ++i)
    copy_strided(in.type, element_at(in.type, in.data, picks[i] * run),
                 element_at(in.type, out.data, static_cast<int64_t>(i) * run),
                 {{outer, bound * run, dims[along] * run}, {run, 1, 1}});
}

void infer_non_zero(infer_context& c) {
  c.set_output(0, dtype::int64, {static_cast<int64_t>(c.rank(0)), c.data_dependent(0, 1)});
}

/// Positions of all elements that are not zero, one coordinate a row.
void non_zero_kernel(kernel_context& c) {
  const const_view& in = c.input(0);
  std::vector<int64_t> found;
  const auto scan = [&](const auto* x) {
    for (int64_t i = 0; i < in.size(); ++i)
      if (x[i] != std::decay_t<decltype(*x)>(0))
        found.push_back(i);
  };
  if (in.type == dtype::boolean)
    scan(in.as<uint8_t>());
  else
    visit_numeric(in.type, [&]<class T>(type_tag<T>) { scan(in.as<T>()); });
  const auto rank = static_cast<int64_t>(in.dims.size()), count = static_cast<int64_t>(found.size());
  int64_t* y = output_of(c, 0, {rank, count}).as<int64_t>();
  const shape strides = strides_of(in.dims);
  for (int64_t axis = 0; axis < rank; ++axis)
    for (int64_t i = 0; i < count; ++i)
      y[axis * count + i] =
          found[static_cast<size_t>(i)] / strides[static_cast<size_t>(axis)] % in.dims[static_cast<size_t>(axis)];
}

void infer_unique(infer_context& c) {
  const auto axis = optional_axis(c.attrs(), c.rank(0));
  const dim count = c.data_dependent(0, axis.value_or(0));
  symbolic_shape out = axis ? c.dims(0) : symbolic_shape{1};
  const dim total = axis ? out[*axis] : volume(c.dims(0));
  out[axis.value_or(0)] = count;
  c.set_output(0, c.type(0), std::move(out));
  c.set_output(1, dtype::int64, {count});
  c.set_output(2, dtype::int64, {total});
  c.set_output(3, dtype::int64, {count});
}

/// Groups of equal rows: first member of each, group of each row, and group sizes.
struct groups {
  std::vector<int64_t> first, group_of, counts;
};

template <class T>
groups group_rows(const std::vector<T>& rows, int64_t count, int64_t run, bool sorted) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto row = [&](int64_t i) { return rows.data() + i * run; };
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return std::lexicographical_compare(row(a), row(a) + run, row(b), row(b) + run);
  });
  groups g;
  g.group_of.resize(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || !std::equal(row(order[i]), row(order[i]) + run, row(order[i - 1]))) {
      g.first.push_back(order[i]); // the sort is stable: the first member of its group
      g.counts.push_back(0);
    }
    ++g.counts.back();
    g.group_of[static_cast<size_t>(order[i])] = static_cast<int64_t>(g.first.size()) - 1;
  }
  if (sorted)
    return g;
  std::vector<int64_t> rank(g.first.size());
  std::iota(rank.begin(), rank.end(), int64_t{0});
  std::sort(rank.begin(), rank.end(), [&](int64_t a, int64_t b) { return g.first[a] < g.first[b]; });
  groups by_position{{}, std::vector<int64_t>(order.size()), {}};
  std::vector<int64_t> moved(rank.size());
  for (size_t i = 0; i < rank.size(); ++i) {
    by_position.first.push_back(g.first[rank[i]]);
    by_position.counts.push_back(g.counts[rank[i]]);
    moved[static_cast<size_t>(rank[i])] = static_cast<int64_t>(i);
  }
  for (size_t i = 0; i < order.size(); ++i)
    by_position.group_of[i] = moved[static_cast<size_t>(g.group_of[i])];
  return by_position;
}

/// Rows without elements are all equal, however many there are.
groups empty_rows(int64_t count, bool with_groups) {
  return count == 0 ? groups{}
                    : groups{{0}, std::vector<int64_t>(static_cast<size_t>(with_groups ? count : 0)), {count}};
}

void write_indices(kernel_context& c, size_t output, const std::vector<int64_t>& values) {
  if (c.has_output(output))
    std::copy(values.begin(), values.end(), output_of(c, output, {static_cast<int64_t>(values.size())}).as<int64_t>());
}

template <class T>
void unique(kernel_context& c) {
  const const_view& in = c.input(0);
  const auto axis = optional_axis(c.attrs(), in.dims.size());
  shape dims = axis ? shape(in.dims.begin(), in.dims.end()) : shape{in.size()};
  const size_t along = axis.value_or(0);
  const int64_t outer = product(dims, 0, along), count = dims[along], inner = product(dims, along + 1, dims.size());
  // Rows: what belongs to one index of the axis, brought together.
  std::vector<T> rows(static_cast<size_t>(in.size()));
  const int64_t run = outer * inner;
  for (int64_t i = 0; i < in.size(); ++i)
    rows[static_cast<size_t>(i / inner % count * run + i / (inner * count) * inner + i % inner)] = in.as<T>()[i];
  const groups g =
      run == 0 ? empty_rows(count, c.has_output(2)) : group_rows(rows, count, run, c.attrs().integer("sorted", 1) != 0);
  dims[along] = static_cast<int64_t>(g.first.size());
  T* y = output_of(c, 0, dims).template as<T>();
  for (int64_t i = 0; i < dims[along]; ++i)
    for (int64_t j = 0; j < run; ++j)
      y[(j / inner * dims[along] + i) * inner + j % inner] = rows[static_cast<size_t>(g.first[i] * run + j)];
  write_indices(c, 1, g.first);
  write_indices(c, 2, g.group_of);
  write_indices(c, 3, g.counts);
}

void unique_kernel(kernel_context& c) {
  const dtype type = c.input(0).type;
  if (type == dtype::string)
    unique<std::string>(c);
  else if (type == dtype::boolean)
    unique<uint8_t>(c);
  else
    visit_numeric(type, [&]<class T>(type_tag<T>) { unique<T>(c); });
}

void infer_one_hot(infer_context& c) {
  dim depth;
  if (types::integers & set_of(c.type(1))) {
    const auto elements = c.require_known(1);
    if (elements.size() != 1)
      fail(errc::invalid_model, "the depth of OneHot has {} elements", elements.size());
    depth = elements[0];
  } else {
    const tensor t = c.constant(1);
    if (!t.defined() || t.size() != 1)
      fail(errc::unsupported, "the depth of OneHot must be one known number");
    depth = static_cast<int64_t>(to_double(t.view()).at(0));
  }
  if (depth.is_constant() && depth.constant() < 0)
    fail(errc::invalid_model, "the depth of OneHot is {}", depth.constant());
  require_same(volume(c.dims(2)), 2, "the values of OneHot and what there must be");
  symbolic_shape out = c.dims(0);
  const size_t axis = c.axis("axis", -1, out.size() + 1);
  out.insert(out.begin() + static_cast<int64_t>(axis), depth);
  c.set_output(0, c.type(2), std::move(out));
}

void one_hot_kernel(kernel_context& c) {
  const mutable_view& out = c.output(0);
  if (c.input(2).size() != 2)
    fail(errc::invalid_input, "the values of OneHot have {} elements instead of 2", c.input(2).size());
  const size_t axis = normalize_axis(c.attrs().integer("axis", -1), out.dims.size());
  const int64_t depth = out.dims[axis], inner = product(out.dims, axis + 1, out.dims.size());
  const std::vector<double> indices = to_double(c.input(0));
  visit_movable(out.type, [&]<class T>(type_tag<T>) {
    const T* values = c.input(2).as<T>();
    std::fill_n(out.as<T>(), out.size(), values[0]);
    for (size_t i = 0; i < indices.size(); ++i) {
      const double index = indices[i] < 0 ? indices[i] + static_cast<double>(depth) : indices[i];
      if (!(index >= 0 && index < static_cast<double>(depth)))
        continue; // out of range: all off
      const auto position = static_cast<int64_t>(i);
      out.as<T>()[(position / inner * depth + static_cast<int64_t>(index)) * inner + position % inner] = values[1];
    }
  });
}

void infer_trilu(infer_context& c) {
  if (c.rank(0) < 2)
    fail(errc::invalid_model, "Trilu takes matrices, not rank {}", c.rank(0));
  c.set_output(0, c.type(0), c.dims(0));
}

/// Keeps what is on and above (upper) or below diagonal k of each matrix, zero elsewhere.
void trilu_kernel(kernel_context& c) {
  const const_view& in = c.input(0);
  const int64_t rows = in.dims[in.dims.size() - 2], columns = in.dims.back();
  const bool upper = c.attrs().integer("upper", 1) != 0;
  int64_t k = 0;
  if (c.has_input(1)) {
    if (c.input(1).size() != 1)
      fail(errc::invalid_input, "the diagonal of Trilu has {} elements instead of one", c.input(1).size());
    k = to_int64(c.input(1))[0];
  }
  k = std::clamp(k, -rows - 1, columns + 1);
  const int64_t lines = product(in.dims, 0, in.dims.size() - 1);
  visit_width(in.type, [&]<class T>(type_tag<T>) {
    for (int64_t line = 0; line < lines; ++line) {
      const T* x = in.as<T>() + line * columns;
      T* y = c.output(0).as<T>() + line * columns;
      // Columns [0, split) are below the diagonal, or on and below it for the lower triangle.
      const int64_t split = std::clamp<int64_t>(line % rows + k + (upper ? 0 : 1), 0, columns);
      for (int64_t i = 0; i < columns; ++i)
        y[i] = (i >= split) == upper ? x[i] : T(0);
    }
  });
}

void infer_reverse_sequence(infer_context& c) {
  if (c.rank(0) < 2)
    fail(errc::invalid_model, "ReverseSequence takes rank 2 or more, not {}", c.rank(0));
  require_same_dims(c.dims(1), std::span(&c.dims(0)[c.axis("batch_axis", 1, c.rank(0))], 1), "lengths and the batch");
  c.set_output(0, c.type(0), c.dims(0));
}

void reverse_sequence_kernel(kernel_context& c) {
  const const_view& in = c.input(0);
  const size_t batch = normalize_axis(c.attrs().integer("batch_axis", 1), in.dims.size());
  const size_t time = normalize_axis(c.attrs().integer("time_axis", 0), in.dims.size());
  const auto lengths = to_int64(c.input(1));
  if (batch == time || static_cast<int64_t>(lengths.size()) != in.dims[batch])
    fail(errc::invalid_input, "ReverseSequence has {} lengths for a batch of {}", lengths.size(), in.dims[batch]);
  copy_all(in, c.output(0));
  const shape strides = strides_of(in.dims);
  for (size_t b = 0; b < lengths.size(); ++b) {
    if (lengths[b] < 0 || lengths[b] > in.dims[time])
      fail(errc::invalid_input, "sequence length {} is out of range for {} steps", lengths[b], in.dims[time]);
    std::vector<copy_axis> axes;
    for (size_t i = 0; i < in.dims.size(); ++i)
      axes.push_back({in.dims[i], strides[i], strides[i]});
    axes[batch].size = 1;
    axes[time] = {lengths[b], -strides[time], strides[time]};
    const int64_t start = static_cast<int64_t>(b) * strides[batch];
    const int64_t last = std::max<int64_t>(lengths[b] - 1, 0) * strides[time];
    copy_strided(in.type, element_at(in.type, in.data, start + last), element_at(in.type, c.output(0).data, start),
                 std::move(axes));
  }
}

constexpr dtype_set unique_types = types::fixed_size | types::string;
void compress_axes(call_axes& a) {
  const auto axis = optional_axis(a.call().attrs(), a.call().rank(0));
  if (axis)
    a.keep(*axis, *axis + 1);
}

void one_hot_axes(call_axes& a) {
  const size_t rank = a.call().rank(0), added = a.call().axis("axis", -1, rank + 1);
  for (size_t axis = 0; axis < rank; ++axis)
    a.map({{0, axis}}, axis < added ? axis : axis + 1);
}

void reverse_sequence_axes(call_axes& a) {
  const size_t rank = a.call().rank(0);
  const size_t time = a.call().axis("time_axis", 0, rank), batch = a.call().axis("batch_axis", 1, rank);
  for (size_t axis = 0; axis < rank; ++axis)
    if (axis != time)
      a.map({{0, axis}, {1, axis == batch ? 0 : call_axes::nowhere}}, axis);
}

constexpr auto select_rows = std::to_array<op_def>({
    op_row("Compress", 9, infer_compress, compress_kernel,
           {.inputs = {2, 2},
            .types = movable_types,
            .hides_elements = true,
            .axes = compress_axes,
            .mixes = "picks elements by their position along"}),
    op_row("NonZero", 9, infer_non_zero, non_zero_kernel,
           {.hides_elements = true, .mixes = "returns as many elements as the data asks for"}),
    op_row("Unique", 11, infer_unique, unique_kernel,
           {.max_outputs = 4,
            .types = unique_types,
            .hides_elements = true,
            .mixes = "compares all elements with each other"}),
    op_row("OneHot", 9, infer_one_hot, one_hot_kernel,
           {.inputs = {3, 3}, .types = types::numeric, .host_inputs = 0b10, .axes = one_hot_axes}),
    op_row("Trilu", 14, infer_trilu, trilu_kernel,
           {.inputs = {1, 2}, .axes = axes::before_last<2>, .mixes = "cuts a triangle over"}),
    op_row("ReverseSequence", 10, infer_reverse_sequence, reverse_sequence_kernel,
           {.inputs = {2, 2}, .types = movable_types, .axes = reverse_sequence_axes, .mixes = "reverses"}),
});

} // namespace

extern constinit const op_table onnx_select_ops = select_rows;

} // namespace troupe
