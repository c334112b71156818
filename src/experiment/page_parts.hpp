// The page of results without its results, as cmake/EmbedPage.cmake made it from the files in page/.
#pragma once

#include <string_view>

namespace troupe::experiments {

extern const std::string_view page_before_data, page_after_data;

} // namespace troupe::experiments
