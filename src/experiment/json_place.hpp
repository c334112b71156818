// Reads JSON that somebody wrote by hand: each complaint says where in which file, and what is allowed there.
#pragma once

#include "base/error.hpp"

#include <nlohmann/json.hpp>

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::experiments {

/// A value and its place in a file, such as "models[2].dims.batch". Refers to the JSON and the name of its file; both must live longer.
/// What it reads it checks: every member throws `errc::invalid_argument` if the value is not what it says.
class json_place {
public:
  json_place(const nlohmann::json& value, const std::string& source) : value_(&value), source_(&source) {}

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail(errc::invalid_argument, "{}: {}: {}", *source_, path_.empty() ? "the file" : path_,
         fmt::format(format, std::forward<Args>(args)...));
  }

  bool is_object() const { return value_->is_object(); }
  bool is_text() const { return value_->is_string(); }

  /// Checks that it is an object with no other members than these.
  void allow(std::initializer_list<std::string_view> names) const;
  /// Returns whether the object has a member.
  bool has(std::string_view name) const { return value_->contains(name); }
  /// Returns a member, which must be there.
  json_place operator[](std::string_view name) const;
  /// Returns all members of an object, at most so many, by name.
  std::vector<std::pair<std::string, json_place>> members(size_t most) const;

  /// Returns the elements of a list of at least one and at most so many.
  std::vector<json_place> list(size_t most) const;
  /// Returns text that is not empty, of at most so many bytes.
  std::string text(size_t longest = 4096) const;
  double number(double least, double most) const;
  int64_t integer(int64_t least, int64_t most) const;

private:
  json_place(const nlohmann::json& value, const json_place& within, const std::string& step);
  [[noreturn]] void want(std::string_view what) const;

  const nlohmann::json* value_;
  const std::string* source_;
  std::string path_;
};

/// Parses JSON with objects and lists at most `most_levels` inside each other. Throws `errc::invalid_argument` that names `source` and
/// says where the text is no JSON.
nlohmann::json parse_json(std::string_view text, const std::string& source, int most_levels = 16);

} // namespace troupe::experiments
