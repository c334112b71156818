#include "tensor/elements.hpp"

namespace troupe {

std::vector<int64_t> to_int64(const const_view& values) {
  if (!((types::integers | types::boolean) & set_of(values.type)))
    fail(errc::invalid_model, "expected integers, found {}", to_string(values.type));
  const auto count = static_cast<size_t>(values.size());
  if (values.type == dtype::boolean)
    return {values.as<uint8_t>(), values.as<uint8_t>() + count};
  return visit_integer(
      values.type, [&]<class T>(type_tag<T>) { return std::vector<int64_t>(values.as<T>(), values.as<T>() + count); });
}

std::vector<double> to_double(const const_view& values) {
  return visit_numeric(values.type, [&]<class T>(type_tag<T>) {
    return std::vector<double>(values.as<T>(), values.as<T>() + static_cast<size_t>(values.size()));
  });
}

} // namespace troupe
