// Results for people and programs. Names come from files: CSV quotes them, text and pages show control characters as
// escapes, and a page takes them for data, never for HTML, whatever they hold.
#pragma once

#include "experiments/results.hpp"

namespace troupe::experiments {

/// Returns one line a row, by setting and repetition, after a line with the columns' names: model, dims, target,
/// policy, strategy, mode, repetition, seconds. Fields are quoted as RFC 4180 says; lines end with '\n'.
std::string to_csv(const results& all, const analysis& found);

/// Returns everything as one JSON object: versions, files with their hashes, settings with their times, summaries and
/// comparisons. The README here has its members.
std::string to_json(const results& all, const analysis& found);

/// Returns a table for each group of settings, problems, and how far simulations are from real runs.
std::string to_text(const results& all, const analysis& found);

/// Returns the same as one HTML page with a plot for each group. It needs nothing else: no network, no other file.
std::string to_page(const results& all, const analysis& found);

} // namespace troupe::experiments
