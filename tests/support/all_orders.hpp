// Every order of what may happen in a small world.
//
// The search is depth first; each path is played from its beginning. A path ends where a world has been before: in the
// same place, whatever the way there.
#pragma once

#include "support/catch.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace troupe::test {

/// What a search has seen.
struct orders_seen {
  size_t places = 0, paths = 0, longest = 0;

  void add(const orders_seen& other) {
    places += other.places;
    paths += other.paths;
    longest = std::max(longest, other.longest);
  }
  std::string text() const {
    return fmt::format("{} places, {} ends, the longest after {} events", places, paths, longest);
  }
};

/// Plays worlds until each choice has been taken at each place; `World` is made from `scope`. `choices` says in words
/// what can happen now, `take` lets it happen, `place` says where the world is, `check` looks at a world where nothing
/// can happen any more. The same choices from the beginning must lead to the same place.
template <class World, class Scope>
orders_seen search_all_orders(const Scope& scope) {
  orders_seen seen;
  std::set<std::string> known;
  std::vector<std::vector<std::string>> open{{}};
  while (!open.empty()) {
    std::vector<std::string> played = std::move(open.back());
    open.pop_back();
    World w(scope);
    for (const std::string& choice : played)
      w.take(choice);
    while (known.insert(w.place()).second) {
      const std::vector<std::string> choices = w.choices();
      if (choices.empty()) {
        INFO(fmt::format("{}", fmt::join(played, ", ")));
        w.check();
        ++seen.paths;
        seen.longest = std::max(seen.longest, played.size());
        break;
      }
      for (size_t i = 1; i < choices.size(); ++i) {
        open.push_back(played);
        open.back().push_back(choices[i]);
      }
      played.push_back(choices.front());
      w.take(choices.front());
    }
  }
  seen.places = known.size();
  CHECK(seen.paths > 0);
  return seen;
}

} // namespace troupe::test
