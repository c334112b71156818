#include "tensor/copy.hpp"

#include <algorithm>
#include <cstring>

namespace troupe {

tensor copy_of(const tensor& source) {
  if (!source.defined())
    return source;
  tensor copy(source.type(), source.dims());
  if (source.type() == dtype::string)
    std::ranges::copy(source.values<std::string>(), copy.mutable_data<std::string>());
  else if (is_container(source.type()))
    std::ranges::transform(source.values<tensor>(), copy.mutable_data<tensor>(), copy_of);
  else if (source.bytes() > 0)
    std::memcpy(copy.mutable_data(), source.data(), static_cast<size_t>(source.bytes()));
  return copy;
}

} // namespace troupe
