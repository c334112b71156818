#include "experiment/json_place.hpp"

#include <fmt/ranges.h>

#include <algorithm>

namespace troupe::experiments {
namespace {

/// What is there instead of what is wanted, short.
std::string found_text(const nlohmann::json& value) {
  constexpr size_t longest = 40;
  std::string text =
      value.is_structured() ? value.type_name() : value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  return text.size() <= longest ? text : text.substr(0, longest) + "…";
}

} // namespace

json_place::json_place(const nlohmann::json& value, const json_place& within, const std::string& step)
    : value_(&value), source_(within.source_), path_(within.path_ + step) {}

void json_place::want(std::string_view what) const {
  refuse("{} is needed, not {}", what, found_text(*value_));
}

void json_place::allow(std::initializer_list<std::string_view> names) const {
  if (!value_->is_object())
    want(fmt::format("an object with {}", fmt::join(names, ", ")));
  for (const auto& [name, unused] : value_->items())
    if (std::find(names.begin(), names.end(), name) == names.end())
      refuse("there is no '{}' here; there are {}", name, fmt::join(names, ", "));
}

json_place json_place::operator[](std::string_view name) const {
  const auto found = value_->find(name);
  if (found == value_->end())
    refuse("'{}' is missing", name);
  return {*found, *this, fmt::format("{}{}", path_.empty() ? "" : ".", name)};
}

std::vector<std::pair<std::string, json_place>> json_place::members(size_t most) const {
  if (!value_->is_object())
    want("an object");
  if (value_->size() > most)
    refuse("{} members; at most {} are allowed", value_->size(), most);
  std::vector<std::pair<std::string, json_place>> all;
  for (const auto& [name, unused] : value_->items())
    all.emplace_back(name, (*this)[name]);
  return all;
}

std::vector<json_place> json_place::list(size_t most) const {
  if (!value_->is_array())
    want("a list");
  if (value_->empty() || value_->size() > most)
    refuse("a list of {}; 1 to {} are allowed", value_->size(), most);
  std::vector<json_place> all;
  for (const nlohmann::json& element : *value_)
    all.push_back({element, *this, fmt::format("[{}]", all.size())});
  return all;
}

std::string json_place::text(size_t longest) const {
  if (!value_->is_string() || value_->get_ref<const std::string&>().empty() ||
      value_->get_ref<const std::string&>().size() > longest)
    want(fmt::format("text of 1 to {} bytes", longest));
  return value_->get<std::string>();
}

double json_place::number(double least, double most) const {
  if (!value_->is_number() || !(value_->get<double>() >= least && value_->get<double>() <= most))
    want(fmt::format("a number from {} to {}", least, most));
  return value_->get<double>();
}

int64_t json_place::integer(int64_t least, int64_t most) const {
  // What is above the largest int64_t is kept as unsigned.
  const bool fits =
      value_->is_number_unsigned() ? value_->get<uint64_t>() <= uint64_t{INT64_MAX} : value_->is_number_integer();
  if (!fits || value_->get<int64_t>() < least || value_->get<int64_t>() > most)
    want(fmt::format("a whole number from {} to {}", least, most));
  return value_->get<int64_t>();
}

nlohmann::json parse_json(std::string_view text, const std::string& source, int most_levels) {
  const auto check_depth = [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    if (depth > most_levels)
      fail(errc::invalid_argument, "{}: more than {} lists and objects inside each other", source, most_levels);
    return true;
  };
  try {
    return nlohmann::json::parse(text, check_depth);
  } catch (const nlohmann::json::exception& e) {
    fail(errc::invalid_argument, "{}: not JSON: {}", source, e.what());
  }
}

} // namespace troupe::experiments
