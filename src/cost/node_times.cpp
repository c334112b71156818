#include "cost/node_times.hpp"

#include "base/error.hpp"
#include "ops/graph_hash.hpp"
#include "ops/op.hpp"

#include <algorithm>
#include <unordered_set>

namespace troupe {
namespace {

constexpr double max_seconds = 1e4; // no node takes hours
constexpr double max_sum_s = 1e7;

void add_operands(hasher& h, const graph& program, const std::vector<value_id>& ids, const std::vector<dtype>& types,
                  const std::vector<shape>& dims) {
  h.add(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    h.add(types[i]);
    h.add(std::span<const int64_t>(dims[i]));
    h.add(ids[i] != no_value && program.values[ids[i]].constant != nullptr);
  }
}

} // namespace

bool is_sane_ratio(const operator_times& sums) {
  constexpr double limit = 1e6;
  return sums.ratio() >= 1 / limit && sums.ratio() <= limit; // false for NaN
}

node_identity identity_of(const graph& program, const node& n, const call_shapes& call) {
  hasher h;
  add_operator(h, n);
  add_operands(h, program, n.inputs, call.input_types, call.inputs);
  add_operands(h, program, n.outputs, call.output_types, call.outputs);
  return {h.digest(), operator_name(n)};
}

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
  return old;
}

node_times::node_times(const measured_nodes& measured) {
  if (measured.nodes.size() > max_kept_nodes || measured.operators.size() > max_kept_operators)
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

double node_times::seconds(const node_identity& which, double roofline_s) const {
  if (const auto found = nodes_.find(which.key); found != nodes_.end())
    return found->second;
  const auto found = operators_.find(which.op);
  return found == operators_.end() ? roofline_s : found->second * std::max(roofline_s, least_roofline_s);
}

} // namespace troupe
