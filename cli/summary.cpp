#include "cli/summary.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace troupe::cli {
namespace {

/// A session's caches with their names in text.
std::array<std::pair<const char*, const cache_stats*>, 3> caches_of(const session_stats& stats) {
  return {{{"plans", &stats.plans}, {"bound plans", &stats.bound_plans}, {"layouts", &stats.layouts}}};
}

} // namespace

namespace {

/// Returns the first strings of a tensor, long ones cut.
std::vector<std::string> first_strings(const tensor& t, size_t keep) {
  constexpr size_t longest = 200; // bytes
  const auto all = t.values<std::string>();
  std::vector<std::string> strings;
  for (size_t i = 0; i < std::min(keep, all.size()); ++i)
    strings.push_back(all[i].size() > longest ? all[i].substr(0, longest) + "…" : all[i]);
  return strings;
}

} // namespace

bool can_summarise(const tensor& t) {
  return (types::numeric & set_of(t.type())) && t.size() > 0;
}

summary summarise(const tensor& t, size_t keep) {
  const std::vector<double> values = to_double(t.view());
  summary s;
  double smallest = std::numeric_limits<double>::infinity(), largest = -smallest, squares = 0;
  int64_t finite = 0;
  for (double v : values) {
    s.nan += std::isnan(v);
    s.infinite += std::isinf(v);
    s.zero += v == 0;
    if (!std::isfinite(v))
      continue;
    smallest = std::min(smallest, v);
    largest = std::max(largest, v);
    const double step = v - s.mean; // Welford's recurrence
    s.mean += step / static_cast<double>(++finite);
    squares += step * (v - s.mean);
  }
  if (finite > 0) {
    s.smallest = smallest;
    s.largest = largest;
    s.deviation = std::sqrt(squares / static_cast<double>(finite));
  }
  s.first.assign(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(std::min(keep, values.size())));
  return s;
}

std::string summary_text(const tensor& t) {
  constexpr size_t shown = 3;
  if (t.type() == dtype::string)
    return fmt::format("[\"{}\"{}", fmt::join(first_strings(t, shown), "\", \""),
                       t.size() > int64_t{shown} ? ", …]" : "]");
  if (!can_summarise(t))
    return "";
  const summary s = summarise(t);
  std::string text = fmt::format("min {:.6g}  max {:.6g}  mean {:.6g}", s.smallest, s.largest, s.mean);
  if (s.nan + s.infinite)
    text += fmt::format("  NaN {}  infinite {}", s.nan, s.infinite);
  text += "  [";
  for (size_t i = 0; i < s.first.size(); ++i)
    text += fmt::format("{}{:.6g}", i ? ", " : "", s.first[i]);
  return text + (t.size() > static_cast<int64_t>(s.first.size()) ? ", …]" : "]");
}

nlohmann::json summary_json(const tensor& t, size_t keep) {
  nlohmann::json j{{"type", to_string(t.type())}, {"dims", t.dims()}};
  if (t.type() == dtype::string)
    j["first"] = first_strings(t, keep);
  if (!can_summarise(t))
    return j;
  const summary s = summarise(t, keep);
  j.update({{"min", s.smallest},
            {"max", s.largest},
            {"mean", s.mean},
            {"deviation", s.deviation},
            {"nan", s.nan},
            {"infinite", s.infinite},
            {"not_finite", s.nan + s.infinite},
            {"zero", s.zero},
            {"first", s.first}});
  return j;
}

std::string cache_text(const session_stats& stats) {
  std::string text;
  for (const auto& [name, cache] : caches_of(stats)) {
    text += fmt::format("{}{} {} of {}", text.empty() ? "" : ", ", name, cache->hits, cache->hits + cache->misses);
    if (cache->evictions > 0)
      text += fmt::format(" ({} evicted)", cache->evictions);
  }
  return text;
}

nlohmann::json cache_json(const session_stats& stats) {
  nlohmann::json j;
  for (auto [name, cache] : caches_of(stats)) {
    std::string key = name;
    std::replace(key.begin(), key.end(), ' ', '_');
    j[key] = {{"hits", cache->hits}, {"misses", cache->misses}, {"evictions", cache->evictions}};
  }
  return j;
}

} // namespace troupe::cli
