// Catch2, whichever version the system has: 2 (Debian 12) or 3 (Debian 13).
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;

namespace Catch { // where version 2 has them

inline auto Contains(const std::string& text) {
  return Matchers::ContainsSubstring(text);
}
using Matchers::EndsWith;
using Matchers::StartsWith;

} // namespace Catch
#else
#include <catch2/catch.hpp>
#endif
