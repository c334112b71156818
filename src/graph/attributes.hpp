// Attributes of a node, by name.
#pragma once

#include "tensor/elements.hpp"
#include "troupe/attribute.hpp"

namespace troupe {

/// The attributes of a node. Getters throw `errc::invalid_model` if an attribute has another type than asked for, or
/// is missing and has no default.
class attributes {
public:
  bool has(std::string_view name) const { return find(name) != nullptr; }
  void set(std::string name, attribute value) { values_.insert_or_assign(std::move(name), std::move(value)); }
  void erase(const std::string& name) { values_.erase(name); }

  int64_t integer(std::string_view name) const;
  int64_t integer(std::string_view name, int64_t otherwise) const;
  float real(std::string_view name) const;
  float real(std::string_view name, float otherwise) const;
  std::string text(std::string_view name, std::string otherwise) const;
  std::vector<int64_t> integers(std::string_view name) const;
  std::vector<int64_t> integers(std::string_view name, std::vector<int64_t> otherwise) const;
  std::vector<float> reals(std::string_view name, std::vector<float> otherwise) const;
  std::vector<std::string> texts(std::string_view name, std::vector<std::string> otherwise) const;
  const tensor& tensor_value(std::string_view name) const;

  const std::map<std::string, attribute, std::less<>>& all() const { return values_; }

private:
  const attribute* find(std::string_view name) const;

  std::map<std::string, attribute, std::less<>> values_;
};

} // namespace troupe
