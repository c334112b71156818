// JSON within the script of an HTML page.
#pragma once

#include <string>
#include <string_view>

namespace troupe {

/// Returns a page: what comes before its data, JSON, and what comes after. No '<' of the JSON is left, so that nothing
/// in it ends the script or begins a comment; each is within a text there, where its escape is the same.
inline std::string embed_json(std::string_view before, std::string_view json, std::string_view after) {
  std::string page;
  page.reserve(before.size() + json.size() + after.size());
  page += before;
  for (const char c : json) {
    if (c == '<')
      page += "\\u003c";
    else
      page += c;
  }
  page += after;
  return page;
}

} // namespace troupe
