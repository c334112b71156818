// HTML pages without their data, as cmake/EmbedPages.cmake made them from the folders of the same names.
#pragma once

#include <string>
#include <string_view>

namespace troupe {

/// A page as text around D3 and around its data.
struct page_parts {
  std::string_view before_d3, before_data, after_data;
};

extern const page_parts trace_parts, results_parts;

/// Returns the page with D3 and with its data, JSON. No '<' of the JSON is left, so that nothing in it ends the script
/// or begins a comment; each is within a text there, where its escape is the same.
std::string page_of(const page_parts& parts, std::string_view json);

} // namespace troupe
