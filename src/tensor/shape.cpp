#include "tensor/shape.hpp"

#include "base/checked.hpp"

#include <algorithm>

namespace troupe {

int64_t volume(std::span<const int64_t> dims) {
  int64_t product = 1;
  bool empty = false;
  for (int64_t d : dims) {
    if (d < 0)
      fail(errc::invalid_model, "shape {} has a negative dim", to_string(dims));
    empty = empty || d == 0;
    product = checked_mul(product, std::max<int64_t>(d, 1));
  }
  return empty ? 0 : product;
}

shape strides_of(std::span<const int64_t> dims) {
  shape strides(dims.size());
  int64_t step = 1;
  for (size_t i = dims.size(); i-- > 0; step *= dims[i])
    strides[i] = step;
  return strides;
}

shape broadcast(std::span<const int64_t> a, std::span<const int64_t> b) {
  const size_t rank = std::max(a.size(), b.size());
  shape out(rank);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t da = i + a.size() < rank ? 1 : a[i + a.size() - rank];
    const int64_t db = i + b.size() < rank ? 1 : b[i + b.size() - rank];
    if (da != db && da != 1 && db != 1)
      fail(errc::invalid_input, "shapes {} and {} cannot be broadcast together", to_string(a), to_string(b));
    out[i] = da == 1 ? db : da;
  }
  return out;
}

shape broadcast_strides(std::span<const int64_t> dims, std::span<const int64_t> out) {
  shape strides(out.size(), 0);
  const shape own = strides_of(dims);
  const size_t lead = out.size() - dims.size();
  for (size_t i = 0; i < dims.size(); ++i)
    strides[lead + i] = dims[i] == 1 ? 0 : own[i];
  return strides;
}

std::string to_string(std::span<const int64_t> dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i)
    text += (i ? ", " : "") + std::to_string(dims[i]);
  return text + "]";
}

} // namespace troupe
