// The page of traces without a trace, as cmake/EmbedPage.cmake made it from the files in page/.
#pragma once

#include <string_view>

namespace troupe {

extern const std::string_view page_before_data, page_after_data;

} // namespace troupe
