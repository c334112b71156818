#include "graph/known_tensor.hpp"

#include <algorithm>

namespace troupe {

tensor known_tensor(const value& info, const shape& dims, std::span<const int64_t> elements) {
  if (volume(dims) != static_cast<int64_t>(elements.size()))
    fail(errc::internal, "host-known value '{}' of shape {} has {} elements", info.name, to_string(dims),
         elements.size());
  tensor t(info.type, dims);
  const auto fill = [&]<class T>(type_tag<T>) {
    std::transform(elements.begin(), elements.end(), t.mutable_data<T>(), [](int64_t e) { return static_cast<T>(e); });
  };
  if (info.type == dtype::boolean)
    std::transform(elements.begin(), elements.end(), t.mutable_data<bool>(), [](int64_t e) { return e != 0; });
  else
    visit_numeric(info.type, fill);
  return t;
}

} // namespace troupe
