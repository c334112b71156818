#include "experiments/result_tables.hpp"

#include "base/printable.hpp"
#include "plan/place/policies.hpp"
#include "strategy/replica_sets.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

namespace troupe::experiments {
namespace {

std::string dims_text(const bindings& dims) {
  std::string text;
  for (const auto& [name, value] : dims)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  return text;
}

/// Quotes what would end a field.
std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos)
    return std::string(text);
  std::string quoted = "\"";
  for (const char c : text)
    quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

/// Times of a table have one unit, so that their columns can be compared.
struct unit {
  double of_second;
  std::string_view name;
};

/// Returns the unit in which the shortest median of settings is 1 or more.
unit unit_for(std::span<const setting_results> settings) {
  double shortest = INFINITY;
  for (const setting_results& s : settings)
    if (s.seconds.median > 0)
      shortest = std::min(shortest, s.seconds.median);
  return shortest < 1e-3 ? unit{1e6, "µs"} : shortest < 1 ? unit{1e3, "ms"} : unit{1, "s"};
}

std::string probability_text(const std::optional<double>& p) {
  return !p ? "" : *p < 0.0001 ? "< 0.0001" : fmt::format("{:.4f}", *p);
}

std::string mean_text(const summary& s, unit u) {
  if (!s.mean_interval)
    return fmt::format("{:.3f}", s.mean * u.of_second);
  return fmt::format("{:.3f} ± {:.3f}", s.mean * u.of_second, (s.mean_interval->high - s.mean) * u.of_second);
}

std::string line_of(const setting& s, const setting_results& r, unit u) {
  std::string line = fmt::format("{:14} {:16} {:>4}", to_string(s.policy), to_string(s.strategy), r.rows.size());
  if (!r.rows.empty())
    line += fmt::format(" {:>12.3f} {:>22}", r.seconds.median * u.of_second, mean_text(r.seconds, u));
  if (const auto& c = r.beside_baseline)
    line += fmt::format(" {:>8.3f} {:>9} {:>9}  {}", c->speedup, probability_text(c->t_adjusted),
                        probability_text(c->wilcoxon_adjusted), to_string(c->verdict));
  else if (!r.rows.empty())
    line += "  baseline";
  return line + '\n';
}

/// Returns the table of settings `first` up to `end`, which share a baseline.
std::string group_text(const results& all, const analysis& found, size_t first, size_t end) {
  const setting& common = all.what.settings[first];
  const auto rows = std::span(found.settings).subspan(first, end - first);
  const unit u = unit_for(rows);
  const std::string dims = dims_text(common.dims);
  std::string text =
      fmt::format("{}{}{} on {}, {}\n", printable(common.model.filename().string()), dims.empty() ? "" : " ",
                  printable(dims), printable(to_string(common.where)), to_string(common.mode));
  text += fmt::format("{:14} {:16} {:>4} {:>12} {:>22} {:>8} {:>9} {:>9}\n", "policy", "strategy", "runs",
                      fmt::format("median {}", u.name), fmt::format("mean {}, {:g} %", u.name, 100 * found.confidence),
                      "speed-up", "p (t)", "p (rank)");
  for (size_t s = first; s < end; ++s)
    text += line_of(all.what.settings[s], found.settings[s], u);
  return text + '\n';
}

std::string requests_text(const experiment& what) {
  const std::string count = fmt::format("{} {}", what.requests, what.requests == 1 ? "request" : "requests");
  switch (what.arrivals.how) {
    case arrivals::process::listed: return count + " at listed times";
    case arrivals::process::poisson: return fmt::format("{}, {:g} a second", count, what.arrivals.per_second);
    case arrivals::process::closed: break;
  }
  return fmt::format("{}, {} in flight", count, what.arrivals.in_flight);
}

std::string setting_name(const setting& s) {
  const std::string dims = dims_text(s.dims);
  return fmt::format("{}{}{} on {}, {}, {}", s.model.filename().string(), dims.empty() ? "" : " ", dims,
                     to_string(s.where), to_string(s.policy), to_string(s.strategy));
}

std::string problems_text(const results& all) {
  std::string text;
  for (const run_problem& p : all.problems)
    text += fmt::format("failed: {}{}: {}\n", printable(setting_name(all.what.settings.at(p.setting))),
                        p.repetition ? fmt::format(", repetition {}", *p.repetition) : "", printable(p.what));
  return text;
}

std::string errors_text(const results& all, const analysis& found) {
  std::string text;
  for (const simulation_error& e : found.simulation_errors)
    text += fmt::format("simulated {:+.1f} % of real: {}\n", 100 * e.error,
                        printable(setting_name(all.what.settings[e.real])));
  if (found.mean_error)
    text += fmt::format("mean error of {} simulated settings: {:.1f} %\n", found.simulation_errors.size(),
                        100 * *found.mean_error);
  return text;
}

} // namespace

std::string to_csv(const results& all, const analysis& found) {
  std::string text = "model,dims,target,policy,strategy,mode,repetition,seconds\n";
  for (size_t i = 0; i < found.settings.size(); ++i) {
    const setting& s = all.what.settings[i];
    for (const result_row& r : found.settings[i].rows)
      text += fmt::format("{},{},{},{},{},{},{},{}\n", csv_field(s.model.string()), csv_field(dims_text(s.dims)),
                          csv_field(to_string(s.where)), to_string(s.policy), to_string(s.strategy), to_string(s.mode),
                          r.repetition, r.seconds);
  }
  return text;
}

std::string to_text(const results& all, const analysis& found) {
  std::string text = fmt::format("{}: {} repetitions of {}\n\n", printable(all.what.name), all.what.repetitions,
                                 requests_text(all.what));
  for (size_t first = 0, end = 0; first < found.settings.size(); first = end) {
    while (end < found.settings.size() && all.what.settings[end].baseline == all.what.settings[first].baseline)
      ++end;
    text += group_text(all, found, first, end);
  }
  return text + problems_text(all) + errors_text(all, found);
}

} // namespace troupe::experiments
