#include "experiment/page_parts.hpp"
#include "experiment/result_tables.hpp"

#include <string>

namespace troupe::experiments {
namespace {

/// Returns JSON that no HTML reader can take for the end of its script: every '<' is within a text there, where its escape is the same.
std::string without_tags(std::string_view json) {
  std::string text;
  text.reserve(json.size());
  for (const char c : json) {
    if (c == '<')
      text += "\\u003c";
    else
      text += c;
  }
  return text;
}

} // namespace

std::string to_page(const results& all, const analysis& found) {
  return std::string(page_before_data) + without_tags(to_json(all, found)) + std::string(page_after_data);
}

} // namespace troupe::experiments
