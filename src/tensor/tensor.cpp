#include "troupe/tensor.hpp"

#include "base/error.hpp"

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
  if (volume(dims) != size())
    fail(errc::invalid_argument, "tensor::reshaped: {} elements do not fill the shape {}", size(), to_string(dims));
  return {type_, std::move(dims), owner_, data_};
}

} // namespace troupe
