#include "cost/node_times.hpp"

#include "base/error.hpp"
#include "ops/graph_hash.hpp"
#include "ops/op.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_set>

namespace troupe {
namespace {

constexpr double max_seconds = 1e4; // no node takes hours
constexpr double max_sum_s = 1e7;

/// Adds operands to the hash of a call and to that of its family.
void add_operands(hasher& whole, hasher& family, const graph& program, const std::vector<value_id>& ids,
                  const std::vector<dtype>& types, const std::vector<shape>& dims) {
  for (hasher* h : {&whole, &family})
    h->add(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    const bool constant = ids[i] != no_value && program.values[ids[i]].constant != nullptr;
    const size_t rows = constant || dims[i].empty() ? 0 : 1; // its leading dim
    for (hasher* h : {&whole, &family}) {
      h->add(types[i]);
      h->add(std::span<const int64_t>(dims[i]).subspan(h == &family ? rows : 0));
      h->add(constant);
    }
  }
}

int64_t rows_of(const call_shapes& call) {
  for (const shape& dims : call.outputs)
    if (!dims.empty())
      return dims[0];
  return 1;
}

/// Seconds on the line through two measurements.
double between(const rows_time& a, const rows_time& b, int64_t rows) {
  const double part = static_cast<double>(rows - a.rows) / static_cast<double>(b.rows - a.rows);
  return a.seconds + part * (b.seconds - a.seconds);
}

} // namespace

bool is_sane_ratio(const operator_times& sums) {
  constexpr double limit = 1e6;
  return sums.ratio() >= 1 / limit && sums.ratio() <= limit; // false for NaN
}

node_identity identity_of(const graph& program, const node& n, const call_shapes& call) {
  hasher whole, family;
  for (hasher* h : {&whole, &family})
    add_operator(*h, n);
  add_operands(whole, family, program, n.inputs, call.input_types, call.inputs);
  add_operands(whole, family, program, n.outputs, call.output_types, call.outputs);
  return {whole.digest(), operator_name(n), family.digest(), rows_of(call)};
}

namespace {

std::vector<rows_time> merge(std::vector<rows_time> old, std::vector<rows_time> fresh) {
  std::map<decltype(rows_time().place()), const rows_time*> known;
  for (const rows_time& r : old)
    known[r.place()] = &r;
  std::set<decltype(rows_time().place())> renewed;
  for (rows_time& r : fresh) {
    renewed.insert(r.place());
    if (const auto before = known.find(r.place()); before != known.end() && r.seconds > 0)
      r.spread = std::max({r.spread, before->second->spread / 2, std::abs(before->second->seconds / r.seconds - 1)});
  }
  std::erase_if(old, [&](const rows_time& r) { return renewed.contains(r.place()); });
  old.insert(old.end(), fresh.begin(), fresh.end());
  if (old.size() > max_kept_nodes)
    old.erase(old.begin(), old.end() - max_kept_nodes);
  return old;
}

} // namespace

measured_nodes merge(measured_nodes old, measured_nodes fresh) {
  std::unordered_set<hash128> renewed;
  for (const auto& [key, seconds] : fresh.nodes)
    renewed.insert(key);
  std::erase_if(old.nodes, [&](const auto& entry) { return renewed.contains(entry.first); });
  old.nodes.insert(old.nodes.end(), fresh.nodes.begin(), fresh.nodes.end());
  if (old.nodes.size() > max_kept_nodes)
    old.nodes.erase(old.nodes.begin(), old.nodes.end() - max_kept_nodes);
  for (const auto& [name, sums] : old.operators) {
    const auto known = fresh.operators.find(name);
    if (known != fresh.operators.end())
      known->second = {known->second.measured_s + sums.measured_s / 2, known->second.roofline_s + sums.roofline_s / 2};
    else if (fresh.operators.size() < max_kept_operators)
      fresh.operators.emplace(name, sums);
  }
  old.operators = std::move(fresh.operators);
  old.rows = merge(std::move(old.rows), std::move(fresh.rows));
  return old;
}

node_times::node_times(const measured_nodes& measured) {
  if (std::max(measured.nodes.size(), measured.rows.size()) > max_kept_nodes ||
      measured.operators.size() > max_kept_operators)
    fail(errc::invalid_argument, "a device profile keeps at most {} nodes and {} operators", max_kept_nodes,
         max_kept_operators);
  hasher h;
  h.add(measured.nodes.size());
  for (const auto& [key, seconds] : measured.nodes) {
    if (!(seconds >= 0 && seconds <= max_seconds))
      fail(errc::invalid_argument, "the device profile's node {} cannot take {} seconds", to_hex(key), seconds);
    nodes_[key] = seconds;
    h.add(key);
    h.add(seconds);
  }
  for (const rows_time& r : measured.rows) {
    const bool is_sane = r.rows >= 0 && r.seconds >= 0 && r.seconds <= max_seconds &&
                         r.roofline_s >= least_roofline_s && r.roofline_s <= max_seconds && r.spread >= 0;
    if (!is_sane)
      fail(errc::invalid_argument, "the device profile's family {} cannot take {} seconds for {} rows",
           to_hex(r.family), r.seconds, r.rows);
    families_[r.family][r.rows] = r;
    h.add(r.family);
    h.add(r.rows);
    h.add(r.seconds);
    h.add(r.roofline_s);
  }
  for (const auto& [name, sums] : measured.operators) {
    if (name.empty() || name.size() > max_operator_name)
      fail(errc::invalid_argument, "the device profile names an operator in {} bytes; 1 to {} are possible",
           name.size(), max_operator_name);
    const bool sums_are_times = sums.measured_s >= 0 && sums.measured_s <= max_sum_s && sums.roofline_s >= 0;
    if (!sums_are_times || !is_sane_ratio(sums))
      fail(errc::invalid_argument, "the device profile's operator '{}' cannot take {} seconds where {} were predicted",
           name, sums.measured_s, sums.roofline_s);
    operators_[name] = sums.ratio();
    h.add(name);
    h.add(sums.ratio());
  }
  key_ = h.digest();
}

node_times node_times::scaled(double factor) const {
  node_times other = *this; // operators' ratios are of a roofline that is longer, too
  for (auto& [key, seconds] : other.nodes_)
    seconds *= factor;
  for (auto& [family, times] : other.families_)
    for (auto& [rows, time] : times) {
      time.seconds *= factor;
      time.roofline_s *= factor;
    }
  hasher h;
  h.add(key_);
  h.add(factor);
  other.key_ = h.digest();
  return other;
}

double node_times::seconds(const node_identity& which, double roofline_s) const {
  if (const auto found = nodes_.find(which.key); found != nodes_.end())
    return found->second;
  if (const auto family = families_.find(which.family); family != families_.end()) {
    const auto& times = family->second;
    const auto more = times.lower_bound(which.rows);
    if (more != times.end() && more->first == which.rows)
      return more->second.seconds;
    if (more != times.end() && more != times.begin())
      return between(std::prev(more)->second, more->second, which.rows);
    const rows_time& nearest = more == times.end() ? std::prev(more)->second : more->second;
    return nearest.seconds * std::max(roofline_s, least_roofline_s) / nearest.roofline_s;
  }
  const auto found = operators_.find(which.op);
  return found == operators_.end() ? roofline_s : found->second * std::max(roofline_s, least_roofline_s);
}

} // namespace troupe
