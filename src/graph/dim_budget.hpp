// A bound on what arithmetic with symbolic dims takes: files decide how often it is done and how long expressions get.
#pragma once

#include <cstdint>

namespace troupe {

/// Limits, as long as it lives, the characters of the symbolic dims that this thread makes; without one there is no
/// limit. Budgets nest: the innermost counts.
class dim_budget {
public:
  explicit dim_budget(int64_t characters);
  ~dim_budget();
  dim_budget(const dim_budget&) = delete;
  dim_budget& operator=(const dim_budget&) = delete;

  /// Takes `characters` from this thread's budget; throws `errc::unsupported` if that is less.
  static void spend(int64_t characters);

private:
  int64_t left_;
  dim_budget* enclosing_;
};

} // namespace troupe
