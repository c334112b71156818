#include "graph/attributes.hpp"

#include "graph/attribute_kind.hpp"

namespace troupe {
namespace {

template <class T>
const T& as(const attribute& value, std::string_view name) {
  if (const T* typed = std::get_if<T>(&value))
    return *typed;
  fail(errc::invalid_model, "attribute '{}' is {}, but must be {}", name, attribute_kind_names[value.index()],
       attribute_kind_names[attribute(T()).index()]);
}

const attribute& required(const attribute* found, std::string_view name) {
  if (!found)
    fail(errc::invalid_model, "attribute '{}' is missing", name);
  return *found;
}

template <class T>
T optional_as(const attribute* found, std::string_view name, T otherwise) {
  return found ? as<T>(*found, name) : std::move(otherwise);
}

} // namespace

const attribute* attributes::find(std::string_view name) const {
  auto it = values_.find(name);
  return it == values_.end() ? nullptr : &it->second;
}

int64_t attributes::integer(std::string_view name) const {
  return as<int64_t>(required(find(name), name), name);
}

int64_t attributes::integer(std::string_view name, int64_t otherwise) const {
  return optional_as(find(name), name, otherwise);
}

float attributes::real(std::string_view name) const {
  return as<float>(required(find(name), name), name);
}

float attributes::real(std::string_view name, float otherwise) const {
  return optional_as(find(name), name, otherwise);
}

std::string attributes::text(std::string_view name, std::string otherwise) const {
  return optional_as(find(name), name, std::move(otherwise));
}

std::vector<int64_t> attributes::integers(std::string_view name) const {
  return as<std::vector<int64_t>>(required(find(name), name), name);
}

std::vector<int64_t> attributes::integers(std::string_view name, std::vector<int64_t> otherwise) const {
  return optional_as(find(name), name, std::move(otherwise));
}

std::vector<float> attributes::reals(std::string_view name, std::vector<float> otherwise) const {
  return optional_as(find(name), name, std::move(otherwise));
}

std::vector<std::string> attributes::texts(std::string_view name, std::vector<std::string> otherwise) const {
  return optional_as(find(name), name, std::move(otherwise));
}

const tensor& attributes::tensor_value(std::string_view name) const {
  return as<tensor>(required(find(name), name), name);
}

} // namespace troupe
