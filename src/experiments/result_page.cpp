#include "experiments/result_tables.hpp"
#include "pages/page_parts.hpp"

namespace troupe::experiments {

std::string to_page(const results& all, const analysis& found) {
  return page_of(results_parts, to_json(all, found));
}

} // namespace troupe::experiments
