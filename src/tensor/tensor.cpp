#include "troupe/tensor.hpp"

#include "base/error.hpp"

#include <algorithm>
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

/// Makes `count` elements that are objects, one at least, so that they have an address; they live as long as their
/// owner.
template <class T>
std::shared_ptr<const void> make_objects(int64_t count) {
  const auto objects = std::make_shared<std::vector<T>>(static_cast<size_t>(std::max<int64_t>(count, 1)));
  return {objects, objects->data()};
}

} // namespace

tensor::tensor(dtype type, shape dims) : type_(type), dims_(std::move(dims)) {
  owner_ = type == dtype::string ? make_objects<std::string>(size())
           : is_container(type)  ? make_objects<tensor>(size())
                                 : allocate(bytes());
  data_ = owner_.get();
}

tensor tensor::sequence(dtype element, std::vector<tensor> elements) {
  tensor made(sequence_of(element), {static_cast<int64_t>(elements.size())});
  for (size_t i = 0; i < elements.size(); ++i) {
    if (elements[i].type() != element || is_container(element))
      fail(errc::invalid_argument, "tensor::sequence: element {} is {} in a {}", i, to_string(elements[i].type()),
           to_string(made.type()));
    made.mutable_data<tensor>()[i] = std::move(elements[i]);
  }
  return made;
}

tensor tensor::optional(dtype element, const tensor& value) {
  tensor made(optional_of(element), {value.defined() ? 1 : 0});
  if (is_optional(element) || (value.defined() && value.type() != element))
    fail(errc::invalid_argument, "tensor::optional: it holds {}, but is to be {}", to_string(value.type()),
         to_string(made.type()));
  if (value.defined())
    *made.mutable_data<tensor>() = value;
  return made;
}

tensor::tensor(dtype type, shape dims, std::shared_ptr<const void> owner, const void* data)
    : type_(type), dims_(std::move(dims)), owner_(std::move(owner)), data_(data) {}

tensor tensor::reshaped(shape dims) const {
  if (volume(dims) != size())
    fail(errc::invalid_argument, "tensor::reshaped: {} elements do not fill the shape {}", size(), to_string(dims));
  return {type_, std::move(dims), owner_, data_};
}

} // namespace troupe
