// All members of a plain struct, in their order, for an archive: what a struct says once need not be said again.
#pragma once

#include <cstddef>
#include <type_traits>

namespace troupe::wire {

/// Takes the place of a member of any type where members are counted.
struct any_member {
  template <class T>
  operator T() const;
};

/// Returns how many members a plain struct without array members has.
template <class T, class... Members>
constexpr size_t member_count() {
  if constexpr (requires { T{Members{}..., any_member{}}; })
    return member_count<T, Members..., any_member>();
  else
    return sizeof...(Members);
}

/// Calls `a(…)` with all members of a plain struct that has at most eight.
template <class Archive, class T>
void visit_members(Archive& a, T& all) {
  constexpr size_t count = member_count<T>();
  static_assert(std::is_aggregate_v<T> && count > 0 && count <= 8);
  if constexpr (count == 1) {
    auto& [m1] = all;
    a(m1);
  } else if constexpr (count == 2) {
    auto& [m1, m2] = all;
    a(m1, m2);
  } else if constexpr (count == 3) {
    auto& [m1, m2, m3] = all;
    a(m1, m2, m3);
  } else if constexpr (count == 4) {
    auto& [m1, m2, m3, m4] = all;
    a(m1, m2, m3, m4);
  } else if constexpr (count == 5) {
    auto& [m1, m2, m3, m4, m5] = all;
    a(m1, m2, m3, m4, m5);
  } else if constexpr (count == 6) {
    auto& [m1, m2, m3, m4, m5, m6] = all;
    a(m1, m2, m3, m4, m5, m6);
  } else if constexpr (count == 7) {
    auto& [m1, m2, m3, m4, m5, m6, m7] = all;
    a(m1, m2, m3, m4, m5, m6, m7);
  } else {
    auto& [m1, m2, m3, m4, m5, m6, m7, m8] = all;
    a(m1, m2, m3, m4, m5, m6, m7, m8);
  }
}

} // namespace troupe::wire
