// Universes, each in a process of its own.
#pragma once

#include "universe/world.hpp"

namespace troupe::universe {

/// What a universe says of itself.
struct verdict {
  uint64_t digest = 0, switches = 0; // see virtual_threads.hpp
  double virtual_s = 0;
  std::map<std::string, uint64_t> counts; // what was tried how often
  std::vector<std::string> problems;

  bool is_wrong() const { return !problems.empty(); }
};

/// A process that forks one for each universe, and does nothing else: so each begins with the same memory, whatever
/// the caller has done before, and its addresses are the same.
class nursery {
public:
  /// To be made before anything else.
  nursery();
  /// Ends the process.
  ~nursery();
  nursery(const nursery&) = delete;
  nursery& operator=(const nursery&) = delete;

  /// Lets a universe live, and returns what it says. `tells`: it prints its story to stderr.
  verdict live(const world_rules& rules, bool tells);

private:
  int wishes_ = -1, answers_ = -1; // descriptors
};

} // namespace troupe::universe
