#include "experiments/results.hpp"

#include "base/error.hpp"
#include "base/hash_file.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace troupe::experiments {
namespace {

void check_row(const result_row& row, const experiment& what) {
  if (row.setting >= what.settings.size() || row.repetition >= what.repetitions)
    fail(errc::invalid_argument, "repetition {} of setting {} is not in the experiment, which has {} of {} settings",
         row.repetition, row.setting, what.repetitions, what.settings.size());
  if (!(row.seconds >= 0))
    fail(errc::invalid_argument, "repetition {} of setting {} cannot take {} s", row.repetition, row.setting,
         row.seconds);
}

std::vector<setting_results> sort_rows(const results& all) {
  std::vector<setting_results> settings(all.what.settings.size());
  for (const result_row& row : all.rows) {
    check_row(row, all.what);
    settings[row.setting].rows.push_back(row);
  }
  for (setting_results& s : settings) {
    const auto by_repetition = [](const result_row& a, const result_row& b) { return a.repetition < b.repetition; };
    std::sort(s.rows.begin(), s.rows.end(), by_repetition);
    const auto twice = std::adjacent_find(s.rows.begin(), s.rows.end(), [](const result_row& a, const result_row& b) {
      return a.repetition == b.repetition;
    });
    if (twice != s.rows.end())
      fail(errc::invalid_argument, "repetition {} of setting {} is there twice", twice->repetition, twice->setting);
  }
  return settings;
}

std::vector<double> seconds_of(std::span<const result_row> rows) {
  std::vector<double> seconds;
  for (const result_row& r : rows)
    seconds.push_back(r.seconds);
  return seconds;
}

/// Returns the seconds of the repetitions that both have, in their order.
std::pair<std::vector<double>, std::vector<double>> pair_up(std::span<const result_row> a,
                                                            std::span<const result_row> b) {
  std::pair<std::vector<double>, std::vector<double>> pairs;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i].repetition == b[j].repetition) {
      pairs.first.push_back(a[i].seconds);
      pairs.second.push_back(b[j].seconds);
    }
    const size_t least = std::min(a[i].repetition, b[j].repetition);
    i += a[i].repetition == least;
    j += b[j].repetition == least;
  }
  return pairs;
}

/// Whether each repetition would take the same again: no chance is in it that other seeds would change.
bool is_certain(const experiment& what, const setting& s) {
  return s.mode == mode::simulated && what.noise == 0 && what.arrivals.how != arrivals::process::poisson;
}

verdict by_figures(const comparison& c) {
  const double difference = c.t.mean_difference;
  return difference == 0 ? verdict::equal : difference < 0 ? verdict::faster : verdict::slower;
}

/// Says what a comparison comes to, once its probability is adjusted.
verdict judge(const comparison& c, bool certain, double confidence) {
  if (c.t_adjusted)
    return *c.t_adjusted < 1 - confidence ? by_figures(c) : verdict::unclear;
  return certain || c.t.pairs > 1 ? by_figures(c) : verdict::unclear;
}

void compare_settings(const experiment& what, analysis& found) {
  for (size_t s = 0; s < found.settings.size(); ++s) {
    const size_t baseline = what.settings[s].baseline;
    if (baseline == s)
      continue;
    const auto [theirs, own] = pair_up(found.settings.at(baseline).rows, found.settings[s].rows);
    if (own.empty())
      continue;
    comparison& c = found.settings[s].beside_baseline.emplace();
    c.t = paired_t_test(theirs, own, found.confidence);
    c.wilcoxon = wilcoxon_signed_rank(theirs, own);
    const double mean = summarise(own).mean;
    c.speedup = mean > 0 ? summarise(theirs).mean / mean : 0;
  }
}

/// Adjusts one test's probability in all comparisons.
template <class Probability, class Adjusted>
void adjust(std::vector<setting_results>& settings, Probability probability, Adjusted adjusted) {
  std::vector<comparison*> tested;
  std::vector<double> probabilities;
  for (setting_results& s : settings)
    if (s.beside_baseline)
      if (const std::optional<double> p = probability(*s.beside_baseline)) {
        tested.push_back(&*s.beside_baseline);
        probabilities.push_back(*p);
      }
  const std::vector<double> larger = holm_adjusted(probabilities);
  for (size_t i = 0; i < tested.size(); ++i)
    (*tested[i]).*adjusted = larger[i];
}

void find_simulation_errors(const experiment& what, analysis& found) {
  using key = std::tuple<std::string, bindings, std::string, placement_policy, strategy>;
  const auto key_of = [](const setting& s) {
    return key{s.model.string(), s.dims, to_string(s.where), s.policy, s.strategy};
  };
  std::map<key, size_t> simulated;
  for (size_t s = 0; s < what.settings.size(); ++s)
    if (what.settings[s].mode == mode::simulated && std::holds_alternative<device_list>(what.settings[s].where))
      simulated.try_emplace(key_of(what.settings[s]), s);
  double sum = 0;
  for (size_t s = 0; s < what.settings.size(); ++s) {
    const auto same = what.settings[s].mode == mode::real ? simulated.find(key_of(what.settings[s])) : simulated.end();
    if (same == simulated.end() || found.settings[same->second].rows.empty() || !(found.settings[s].seconds.median > 0))
      continue;
    const double error = found.settings[same->second].seconds.median / found.settings[s].seconds.median - 1;
    found.simulation_errors.push_back({same->second, s, error});
    sum += std::abs(error);
  }
  if (!found.simulation_errors.empty())
    found.mean_error = sum / static_cast<double>(found.simulation_errors.size());
}

} // namespace

std::string_view to_string(verdict v) {
  switch (v) {
    case verdict::equal: return "equal";
    case verdict::faster: return "faster";
    case verdict::slower: return "slower";
    case verdict::unclear: break;
  }
  return "unclear";
}

file_record record_of(const std::filesystem::path& file) {
  const auto found = hash_file(file);
  if (!found)
    fail(errc::io, "'{}' cannot be read, so results cannot say which file it was", file.string());
  return {.path = file.string(), .bytes = found->bytes, .hash = found->hash};
}

analysis analyse(const results& all, double confidence) {
  analysis found{.confidence = confidence, .settings = sort_rows(all)};
  for (setting_results& s : found.settings)
    s.seconds = summarise(seconds_of(s.rows), confidence);
  compare_settings(all.what, found);
  adjust(
      found.settings, [](const comparison& c) { return c.t.probability; }, &comparison::t_adjusted);
  adjust(
      found.settings, [](const comparison& c) { return c.wilcoxon.probability; }, &comparison::wilcoxon_adjusted);
  for (size_t s = 0; s < found.settings.size(); ++s)
    if (auto& c = found.settings[s].beside_baseline)
      c->verdict = judge(*c, is_certain(all.what, all.what.settings[s]), confidence);
  find_simulation_errors(all.what, found);
  return found;
}

} // namespace troupe::experiments
