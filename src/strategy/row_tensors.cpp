#include "strategy/row_tensors.hpp"

#include "base/error.hpp"
#include "ops/strided_copy.hpp"

namespace troupe {
namespace {

/// A tensor as [outer, rows, inner].
struct row_layout {
  int64_t outer, rows, inner;

  row_layout(std::span<const int64_t> dims, size_t axis)
      : outer(volume(dims.first(axis))), rows(dims[axis]), inner(volume(dims.subspan(axis + 1))) {}
  int64_t stride() const { return rows * inner; }
};

void require_axis(const tensor& t, size_t axis) {
  if (axis >= t.dims().size())
    fail(errc::invalid_input, "a tensor of shape {} has no rows at axis {}", to_string(t.dims()), axis);
}

void require_rows(const tensor& t, size_t axis, int64_t first, int64_t count) {
  require_axis(t, axis);
  const int64_t rows = t.dims()[axis];
  if (first < 0 || count < 0 || first > rows || count > rows - first)
    fail(errc::invalid_input, "there are no {} rows from row {} on in {} rows", count, first, rows);
}

/// Throws unless the tensors differ in the number of rows alone.
void require_joinable(const tensor& a, const tensor& b, size_t axis) {
  require_axis(a, axis);
  require_axis(b, axis);
  shape expected = b.dims();
  expected[axis] = a.dims()[axis];
  if (a.type() != b.type() || expected != a.dims())
    fail(errc::invalid_input, "{} {} and {} {} do not join along axis {}", to_string(a.type()), to_string(a.dims()),
         to_string(b.type()), to_string(b.dims()), axis);
}

/// Copies `rows` rows at `from` of one tensor to `to` of another.
void copy_rows(const tensor& source, int64_t from, tensor& target, int64_t to, int64_t rows, size_t axis) {
  const row_layout x(source.dims(), axis), y(target.dims(), axis);
  if (x.outer * rows * x.inner > 0)
    copy_strided(source.type(), element_at(source.type(), source.data(), from * x.inner),
                 element_at(target.type(), target.mutable_data(), to * y.inner),
                 {{x.outer, x.stride(), y.stride()}, {rows * x.inner, 1, 1}});
}

/// The first rows of a tensor, from a position that is a whole byte.
tensor view_of(const tensor& t, shape dims, int64_t position) {
  const auto bits = static_cast<int64_t>(bits_of(t.type()));
  if (bits > 0 && position * bits % 8 != 0)
    fail(errc::unsupported, "a row of {} {} elements begins within a byte", to_string(t.dims()), to_string(t.type()));
  const void* data = bits == 0 ? static_cast<const void*>(t.data<std::string>() + position)
                               : static_cast<const char*>(t.data()) + position * bits / 8;
  return {t.type(), std::move(dims), std::make_shared<tensor>(t), data};
}

} // namespace

tensor rows_of(const tensor& t, size_t axis, int64_t first, int64_t count) {
  require_rows(t, axis, first, count);
  const row_layout x(t.dims(), axis);
  if (first == 0 && count == x.rows)
    return t;
  shape dims = t.dims();
  dims[axis] = count;
  if (axis == 0)
    return view_of(t, std::move(dims), first * x.inner);
  tensor copy(t.type(), std::move(dims));
  copy_rows(t, first, copy, 0, count, axis);
  return copy;
}

void put_rows(tensor& into, size_t axis, int64_t at, const tensor& from, int64_t first, int64_t count) {
  require_joinable(into, from, axis);
  require_rows(from, axis, first, count);
  require_rows(into, axis, at, count);
  copy_rows(from, first, into, at, count, axis);
}

tensor join_rows(std::span<const tensor> parts, size_t axis, const tensor_maker& make) {
  if (parts.empty())
    fail(errc::invalid_input, "there are no rows to join");
  require_axis(parts[0], axis);
  shape dims = parts[0].dims();
  for (const tensor& part : parts.subspan(1)) {
    require_joinable(parts[0], part, axis);
    dims[axis] += part.dims()[axis];
  }
  if (parts.size() == 1)
    return parts[0];
  tensor whole = make(parts[0].type(), std::move(dims));
  int64_t row = 0;
  for (const tensor& part : parts) {
    copy_rows(part, 0, whole, row, part.dims()[axis], axis);
    row += part.dims()[axis];
  }
  return whole;
}

} // namespace troupe
