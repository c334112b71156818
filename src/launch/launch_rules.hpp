// Launch rules: the file of a family of operators ends with a table of them, which the build finds.
#pragma once

#include "launch/launch_table.hpp"

#include <initializer_list>

namespace troupe {

/// A rule of one operator: for its rows from opset `since` on, up to the next `since` that a rule states for it.
struct launch_row {
  const char* domain;
  const char* op;
  launch_rule launches;
  int64_t since = 1;
  bool writes_parts = false; // whether the rule knows outputs that are parts of larger tensors
};

/// A file's rows.
using launch_rows = std::initializer_list<launch_row>;

/// All tables: cmake/ListTables.cmake finds them. FILE.cpp calls its own FILE_rules.
extern const std::span<const launch_rows* const> launch_tables;

} // namespace troupe
