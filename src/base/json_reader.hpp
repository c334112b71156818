// Reads JSON that somebody wrote by hand: every complaint says where in the file, what is there, and what is allowed.
#pragma once

#include "base/error.hpp"
#include "base/printable.hpp"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <cmath>

namespace troupe {

/// A value and its place in a file, such as "hosts[2].devices[0].units". Refers to the JSON that it reads.
class json_reader {
public:
  json_reader(const nlohmann::json& value, std::string place) : value_(&value), place_(std::move(place)) {}

  /// Throws `errc::invalid_argument`, naming the place.
  template <class... Arguments>
  [[noreturn]] void complain(fmt::format_string<Arguments...> format, Arguments&&... arguments) const {
    fail(errc::invalid_argument, "{}: {}", place_.empty() ? "the file" : place_,
         fmt::format(format, std::forward<Arguments>(arguments)...));
  }

  /// Throws unless it is an object with no other members than these.
  void allow(std::initializer_list<std::string_view> names) const {
    if (!value_->is_object())
      complain("an object is needed, with {}", fmt::join(names, ", "));
    for (const auto& [name, unused] : value_->items())
      if (std::find(names.begin(), names.end(), name) == names.end())
        complain("there is no '{}'; there are {}", printable(name), fmt::join(names, ", "));
  }

  bool has(const char* name) const { return value_->contains(name); }
  /// Returns a member, which must be there.
  json_reader operator[](const char* name) const {
    if (!has(name))
      complain("'{}' is missing", name);
    return {(*value_)[name], place_.empty() ? name : fmt::format("{}.{}", place_, name)};
  }

  /// Returns the elements of a list.
  std::vector<json_reader> list() const {
    if (!value_->is_array())
      complain("a list is needed");
    std::vector<json_reader> all;
    all.reserve(value_->size());
    for (size_t i = 0; i < value_->size(); ++i)
      all.emplace_back((*value_)[i], fmt::format("{}[{}]", place_, i));
    return all;
  }

  std::string text() const {
    if (!value_->is_string())
      complain("a text is needed");
    return value_->get<std::string>();
  }
  bool flag() const {
    if (!value_->is_boolean())
      complain("true or false is needed");
    return value_->get<bool>();
  }
  /// Returns a number from `least` to `most`.
  double number(double least, double most) const {
    const double n = value_->is_number() ? value_->get<double>() : NAN;
    if (!(n >= least && n <= most))
      complain("a number from {} to {} is needed", least, most);
    return n;
  }
  int64_t integer(int64_t least, int64_t most) const {
    // Those above INT64_MAX are kept as unsigned.
    const bool fits =
        value_->is_number_integer() && !(value_->is_number_unsigned() && value_->get<uint64_t>() > INT64_MAX);
    if (!fits || value_->get<int64_t>() < least || value_->get<int64_t>() > most)
      complain("a whole number from {} to {} is needed", least, most);
    return value_->get<int64_t>();
  }
  const nlohmann::json& raw() const { return *value_; }
  const std::string& place() const { return place_; }

private:
  const nlohmann::json* value_;
  std::string place_;
};

} // namespace troupe
