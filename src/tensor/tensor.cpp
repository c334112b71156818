#include "tensor/tensor.hpp"

#include <cstdlib>
#include <new>

namespace troupe {
namespace {

std::shared_ptr<const void> allocate(int64_t bytes) {
  const size_t rounded = (static_cast<size_t>(bytes) + 64) / 64 * 64;
  void* data = std::aligned_alloc(64, rounded);
  if (!data)
    fail(errc::out_of_memory, "host memory: {} bytes cannot be allocated", bytes);
  return {data, [](const void* p) { std::free(const_cast<void*>(p)); }};
}

} // namespace

tensor::tensor(dtype type, shape dims) : type_(type), dims_(std::move(dims)) {
  if (type == dtype::string) {
    auto strings = std::make_shared<std::vector<std::string>>(static_cast<size_t>(size()));
    data_ = strings->data();
    owner_ = std::move(strings);
    return;
  }
  owner_ = allocate(bytes());
  data_ = owner_.get();
}

tensor::tensor(dtype type, shape dims, std::shared_ptr<const void> owner, const void* data)
    : type_(type), dims_(std::move(dims)), owner_(std::move(owner)), data_(data) {}

tensor tensor::reshaped(shape dims) const {
  expects(volume(dims) == size(), "tensor::reshaped: volumes differ");
  return {type_, std::move(dims), owner_, data_};
}

std::vector<int64_t> to_int64(const const_view& values) {
  if (!((types::integers | types::boolean) & set_of(values.type)))
    fail(errc::invalid_model, "expected integers, found {}", to_string(values.type));
  const auto count = static_cast<size_t>(values.size());
  if (values.type == dtype::boolean)
    return {values.as<uint8_t>(), values.as<uint8_t>() + count};
  return visit_integer(values.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return std::vector<int64_t>(values.as<T>(), values.as<T>() + count);
  });
}

std::vector<double> to_double(const const_view& values) {
  return visit_numeric(values.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return std::vector<double>(values.as<T>(), values.as<T>() + static_cast<size_t>(values.size()));
  });
}

} // namespace troupe
