#include "experiments/result_tables.hpp"
#include "plan/place/policies.hpp"
#include "strategy/replica_sets.hpp"

#include <nlohmann/json.hpp>

namespace troupe::experiments {
namespace {

using json = nlohmann::ordered_json;

constexpr int results_version = 1;

template <class T>
json or_null(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}

json json_of(const std::optional<interval>& i) {
  return i ? json::array({i->low, i->high}) : json(nullptr);
}

json json_of(const summary& s) {
  return {{"count", s.count},
          {"mean_s", s.mean},
          {"median_s", s.median},
          {"deviation_s", s.deviation},
          {"least_s", s.least},
          {"largest_s", s.largest},
          {"mean_interval_s", json_of(s.mean_interval)}};
}

json json_of(const comparison& c) {
  return {{"pairs", c.t.pairs},
          {"speedup", c.speedup},
          {"verdict", to_string(c.verdict)},
          {"difference_s", c.t.mean_difference},
          {"difference_interval_s", json_of(c.t.difference_interval)},
          {"t", or_null(c.t.t)},
          {"t_probability", or_null(c.t.probability)},
          {"t_adjusted", or_null(c.t_adjusted)},
          {"rank_sums", {c.wilcoxon.rank_sum_above, c.wilcoxon.rank_sum_below}},
          {"rank_probability", or_null(c.wilcoxon.probability)},
          {"rank_adjusted", or_null(c.wilcoxon_adjusted)}};
}

json requests_of(const experiment& what) {
  if (what.arrivals.how == arrivals::process::poisson)
    return {{"count", what.requests}, {"per_second", what.arrivals.per_second}};
  if (what.arrivals.how == arrivals::process::listed)
    return {{"count", what.requests}, {"times", what.arrivals.times_s}};
  return {{"count", what.requests}, {"in_flight", what.arrivals.in_flight}};
}

json json_of(const setting& s, const setting_results& r) {
  json runs = json::array();
  for (const result_row& row : r.rows)
    runs.push_back({row.repetition, row.seconds});
  const auto* devices = std::get_if<device_list>(&s.where);
  return {{"model", s.model.string()},
          {"dims", s.dims},
          {devices ? "devices" : "cluster", devices ? json(*devices) : json(std::get<0>(s.where).string())},
          {"target", to_string(s.where)},
          {"policy", to_string(s.policy)},
          {"strategy", to_string(s.strategy)},
          {"mode", to_string(s.mode)},
          {"baseline", s.baseline},
          {"runs", std::move(runs)},
          {"seconds", json_of(r.seconds)},
          {"beside_baseline", r.beside_baseline ? json_of(*r.beside_baseline) : json(nullptr)}};
}

json json_of(const provenance& made_with) {
  json versions = json::object(), files = json::array();
  for (const auto& [name, version] : made_with.versions)
    versions[name] = version;
  for (const file_record& f : made_with.files)
    files.push_back({{"path", f.path}, {"bytes", f.bytes}, {"xxh3_128", to_hex(f.hash)}});
  return {{"versions", std::move(versions)}, {"files", std::move(files)}};
}

json json_of(const analysis& found) {
  json errors = json::array();
  for (const simulation_error& e : found.simulation_errors)
    errors.push_back({{"simulated", e.simulated}, {"real", e.real}, {"error", e.error}});
  return {{"mean_error", or_null(found.mean_error)}, {"errors", std::move(errors)}};
}

} // namespace

std::string to_json(const results& all, const analysis& found) {
  json settings = json::array(), problems = json::array();
  for (size_t s = 0; s < found.settings.size(); ++s)
    settings.push_back(json_of(all.what.settings[s], found.settings[s]));
  for (const run_problem& p : all.problems)
    problems.push_back({{"setting", p.setting}, {"repetition", or_null(p.repetition)}, {"what", p.what}});
  const json j{{"troupe_results", results_version},
               {"name", all.what.name},
               {"made_with", json_of(all.made_with)},
               {"requests", requests_of(all.what)},
               {"repetitions", all.what.repetitions},
               {"seed", all.what.seed},
               {"noise", all.what.noise},
               {"confidence", found.confidence},
               {"settings", std::move(settings)},
               {"problems", std::move(problems)},
               {"simulation", json_of(found)}};
  return j.dump(-1, ' ', false, json::error_handler_t::replace); // names may be no UTF-8
}

} // namespace troupe::experiments
