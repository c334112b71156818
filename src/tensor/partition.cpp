#include "tensor/partition.hpp"

#include "base/error.hpp"

#include <cstring>
#include <numeric>

namespace troupe {
namespace {

void check_axis(const tensor& t, size_t axis) {
  if (axis >= t.dims().size())
    fail(errc::invalid_argument, "axis {} of a tensor of shape {}", axis, to_string(t.dims()));
  if (t.type() == dtype::string || bits_of(t.type()) < 8)
    fail(errc::invalid_argument, "tensors of {} are not cut or joined: their elements are no whole bytes",
         to_string(t.type()));
}

/// Bytes of one index of `axis`, and how many rows of such indices are one after the other.
struct axis_extent {
  size_t inner_bytes;
  size_t rows;
};

axis_extent extent_of(const tensor& t, size_t axis) {
  const auto dims = std::span(t.dims());
  const int64_t inner = volume(dims.subspan(axis + 1)), outer = volume(dims.first(axis));
  return {static_cast<size_t>(bytes_of(t.type(), inner)), static_cast<size_t>(outer)};
}

/// Copies between a part and its place in the whole, one row of the part after the other.
template <class Copy>
void for_each_row(const tensor& whole, const tensor& part, size_t axis, int64_t begin, Copy&& copy) {
  const auto [inner, rows] = extent_of(whole, axis);
  const size_t whole_row = inner * static_cast<size_t>(whole.dims()[axis]);
  const size_t part_row = inner * static_cast<size_t>(part.dims()[axis]);
  for (size_t row = 0; row < rows && part_row > 0; ++row)
    copy(row * whole_row + static_cast<size_t>(begin) * inner, row * part_row, part_row);
}

} // namespace

std::vector<int64_t> equal_shares(int64_t size, size_t parts) {
  const auto count = static_cast<int64_t>(parts);
  std::vector<int64_t> shares;
  for (int64_t i = 0; i < count; ++i)
    shares.push_back(size / count + (i < size % count ? 1 : 0));
  return shares;
}

std::vector<tensor> cut(const tensor& whole, size_t axis, std::span<const int64_t> sizes) {
  check_axis(whole, axis);
  if (std::accumulate(sizes.begin(), sizes.end(), int64_t{0}) != whole.dims()[axis])
    fail(errc::invalid_argument, "the parts of axis {} do not add up to {}", axis, whole.dims()[axis]);
  std::vector<tensor> parts;
  int64_t begin = 0;
  for (const int64_t size : sizes) {
    shape dims = whole.dims();
    dims[axis] = size;
    tensor& part = parts.emplace_back(whole.type(), std::move(dims));
    for_each_row(whole, part, axis, begin, [&](size_t from, size_t to, size_t bytes) {
      std::memcpy(part.mutable_data<std::byte>() + to, whole.data<std::byte>() + from, bytes);
    });
    begin += size;
  }
  return parts;
}

tensor join(std::span<const tensor> parts, size_t axis) {
  if (parts.empty())
    fail(errc::invalid_argument, "no tensors to join");
  shape dims = parts[0].dims();
  check_axis(parts[0], axis);
  dims[axis] = 0;
  for (const tensor& part : parts) {
    shape expected = dims;
    if (part.dims().size() == dims.size())
      expected[axis] = part.dims()[axis];
    if (part.type() != parts[0].type() || part.dims() != expected)
      fail(errc::invalid_argument, "{} {} cannot be joined with {} {} along axis {}", to_string(part.type()),
           to_string(part.dims()), to_string(parts[0].type()), to_string(parts[0].dims()), axis);
  }
  for (const tensor& part : parts)
    dims[axis] += part.dims()[axis];
  tensor whole(parts[0].type(), std::move(dims));
  int64_t begin = 0;
  for (const tensor& part : parts) {
    for_each_row(whole, part, axis, begin, [&](size_t to, size_t from, size_t bytes) {
      std::memcpy(whole.mutable_data<std::byte>() + to, part.data<std::byte>() + from, bytes);
    });
    begin += part.dims()[axis];
  }
  return whole;
}

} // namespace troupe
