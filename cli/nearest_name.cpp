#include "cli/command.hpp"

#include <numeric>
#include <utility>

namespace troupe::cli {

std::string nearest_name(const std::vector<std::string>& names, std::string_view given) {
  std::string nearest;
  size_t least = 3;
  for (const std::string& name : names) {
    // Levenshtein distance, row by row.
    std::vector<size_t> row(given.size() + 1);
    std::iota(row.begin(), row.end(), size_t{0});
    for (size_t i = 0; i < name.size(); ++i) {
      size_t diagonal = std::exchange(row[0], i + 1);
      for (size_t j = 0; j < given.size(); ++j)
        diagonal = std::exchange(row[j + 1], std::min({row[j] + 1, row[j + 1] + 1, diagonal + (name[i] != given[j])}));
    }
    if (row.back() < least) {
      least = row.back();
      nearest = name;
    }
  }
  return nearest;
}

} // namespace troupe::cli
