#include "base/embed_json.hpp"
#include "experiment/page_parts.hpp"
#include "experiment/result_tables.hpp"

namespace troupe::experiments {

std::string to_page(const results& all, const analysis& found) {
  return embed_json(page_before_data, to_json(all, found), page_after_data);
}

} // namespace troupe::experiments
