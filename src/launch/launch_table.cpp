#include "launch/launch_table.hpp"

#include "launch/elementwise.hpp"
#include "launch/launch_rules.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// Whether a rule knows outputs that are parts of larger tensors.
bool writes_parts(launch_rule rule) {
  const auto says_so = [&](const launch_row& row) { return row.writes_parts && row.launches == rule; };
  return std::any_of(launch_tables.begin(), launch_tables.end(),
                     [&](const launch_rows* rows) { return std::any_of(rows->begin(), rows->end(), says_so); });
}

} // namespace

implementation_table<launch_rule>& launch_table() {
  static auto& table =
      *new implementation_table<launch_rule>([] { // never destroyed: engines may live in static objects
        std::vector<implementation<launch_rule>> all = scalar_rules();
        for (const launch_rows* rows : launch_tables)
          for (const launch_row& row : *rows)
            all.push_back({row.domain, row.op, row.launches, row.since});
        return all;
      }());
  return table;
}

bool has_launch_rules(const op_def& def) {
  return !launch_table().of(def).empty();
}

launch_lists launches_of(const op_def& def, const gpu_call& call) {
  launch_lists all;
  const bool parts = std::any_of(call.outputs.begin(), call.outputs.end(), [](auto& o) { return o.is_part(); });
  for (const launch_rule rule : launch_table().of(def))
    if (!parts || writes_parts(rule))
      add_lists(all, rule(call));
  return all;
}

} // namespace troupe
