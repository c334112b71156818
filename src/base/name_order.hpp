// Names with their positions in a list, in the order of maps by name: what such a map holds is found in one walk
// through both.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// A list of different names. Immutable.
class name_order {
public:
  name_order() = default;
  explicit name_order(const std::vector<std::string>& names) {
    for (size_t i = 0; i < names.size(); ++i)
      sorted_.emplace_back(names[i], i);
    std::sort(sorted_.begin(), sorted_.end());
  }

  /// Calls `visit(position, value)` for each entry of `named`, a std::map by name, whose name is in the list, and
  /// `stranger(name)` for each whose name is not.
  template <class Named, class Visit, class Stranger>
  void match(const Named& named, Visit&& visit, Stranger&& stranger) const {
    auto mine = sorted_.begin();
    for (const auto& [name, value] : named) {
      if (mine != sorted_.end() && mine->first != name) // few may be given of many
        mine = std::ranges::lower_bound(mine, sorted_.end(), name, {}, &std::pair<std::string, size_t>::first);
      if (mine != sorted_.end() && mine->first == name)
        visit(mine++->second, value);
      else
        stranger(name);
    }
  }
  /// The same for those in the list alone.
  template <class Named, class Visit>
  void match(const Named& named, Visit&& visit) const {
    match(named, std::forward<Visit>(visit), [](const std::string&) {});
  }

private:
  std::vector<std::pair<std::string, size_t>> sorted_;
};

} // namespace troupe
