#include "base/json_problem.hpp"

#include "base/printable.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe {

std::string json_problem(std::string_view text, const nlohmann::json::exception& why) {
  const auto* syntax = dynamic_cast<const nlohmann::json::parse_error*>(&why);
  if (!syntax) // the parser's only other complaint about a text, and it does not say where
    return "a number is larger than a float64 can be; write a smaller one";
  const std::string_view before = text.substr(0, syntax->byte - 1); // bytes count from 1
  const auto line = 1 + std::ranges::count(before, '\n');
  const size_t column = before.size() - (before.rfind('\n') + 1) + 1; // npos + 1 is 0
  if (before.size() == text.size())
    return fmt::format("line {}, column {}: the text ends too early; add what is missing", line, column);
  return fmt::format("line {}, column {}: '{}' is wrong there; correct the text up to there", line, column,
                     printable(text.substr(before.size(), 1)));
}

} // namespace troupe
