#include "pages/page_parts.hpp"

namespace troupe {

extern const std::string_view d3; // one text for all pages: it is most of each

std::string page_of(const page_parts& parts, std::string_view json) {
  std::string page;
  page.reserve(parts.before_d3.size() + d3.size() + parts.before_data.size() + json.size() + parts.after_data.size());
  page += parts.before_d3;
  page += d3;
  page += parts.before_data;
  for (const char c : json) {
    if (c == '<')
      page += "\\u003c";
    else
      page += c;
  }
  page += parts.after_data;
  return page;
}

} // namespace troupe
