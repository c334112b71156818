// The page of src/trace/page with its style, scripts and D3, as the build has put them together (src/CMakeLists.txt).
#pragma once

#include <string_view>

namespace troupe {

extern const std::string_view page_before_data, page_after_data;

} // namespace troupe
