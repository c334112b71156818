// What each operator does with the rows of a batch: the table that the row proof reads.
#pragma once

#include "strategy/row_call.hpp"

namespace troupe {

/// The axis of the rows in each output; the last one named holds for all that follow.
using row_axes = std::vector<size_t>;

/// Returns where the outputs of a call have their rows, if an operand has rows or a result's dims depend on their
/// number; throws `errc::unsupported` with the reason (see row_call) if the call mixes rows.
using row_rule = row_axes (*)(const row_call&);

struct row_rule_entry {
  std::string_view domain, name;
  row_rule rule;
};

/// The families' rules, each in a file of its own.
std::span<const row_rule_entry> axis_row_rules();
std::span<const row_rule_entry> domain_row_rules();
std::span<const row_rule_entry> movement_row_rules();
std::span<const row_rule_entry> product_row_rules();
std::span<const row_rule_entry> window_row_rules();

/// Returns an operator's rule. An operator that is in no table, but elementwise by its own row (`is_elementwise`),
/// broadcasts. Null if there is none.
row_rule find_row_rule(const op_def& def);

/// Returns why an operator has no rule.
std::string_view why_no_row_rule(const op_def& def);

} // namespace troupe
