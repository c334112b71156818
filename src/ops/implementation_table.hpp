// How operators are run on a kind of device: an ordered list of rules for each operator row, the best first.
//
// Each kind of device has one table: launch/launch_table.cpp for GPUs, cpu/kernel_list.cpp for the CPU. The rules of an
// operator are written down by its name and found by its row (`op_def`), so that a name that no operator has is seen
// when the table is made.
#pragma once

#include "ops/registry.hpp"

#include <unordered_map>

namespace troupe {

/// One rule for operator `op`: for its rows from opset `since` on, up to the next `since` that is written down for it.
template <class Rule>
struct implementation {
  std::string_view domain, op;
  Rule rule;
  int64_t since = 1;
};

/// See the top of this file. Several threads may read as long as no thread adds.
template <class Rule>
class implementation_table {
public:
  /// Throws `errc::internal` if an implementation is for no operator row.
  explicit implementation_table(std::span<const implementation<Rule>> all) {
    std::vector<bool> used(all.size());
    for (const op_def* def : all_ops()) {
      int64_t newest = 0;
      for (const auto& i : all)
        if (is_for(i, *def))
          newest = std::max(newest, i.since);
      for (size_t i = 0; i < all.size(); ++i)
        if (is_for(all[i], *def) && all[i].since == newest) {
          add(*def, all[i].rule);
          used[i] = true;
        }
    }
    for (size_t i = 0; i < all.size(); ++i)
      if (!used[i])
        fail(errc::internal, "an implementation is for '{}', which is not an operator", all[i].op);
  }

  /// Appends a rule for an operator row, which must outlive the table: one of an operator that is not in the registry
  /// too.
  void add(const op_def& def, Rule rule) { rules_[&def].push_back(std::move(rule)); }

  /// Returns the rules for an operator row, best first; none if this kind of device has none.
  std::span<const Rule> of(const op_def& def) const {
    const auto it = rules_.find(&def);
    return it == rules_.end() ? std::span<const Rule>() : std::span<const Rule>(it->second);
  }

private:
  static bool is_for(const implementation<Rule>& i, const op_def& def) {
    return i.op == def.name && i.domain == def.domain && i.since <= def.since;
  }

  std::unordered_map<const op_def*, std::vector<Rule>> rules_;
};

} // namespace troupe
