// A timeline as one HTML page that needs nothing else: no network, no other file. Its parts are in trace/ (README).
#pragma once

#include "trace/trace_diff.hpp"
#include "trace/trace_summary.hpp"

namespace troupe {

/// Returns the page: lanes that can be zoomed and moved, what is under the pointer, the critical path, counters, use of
/// the devices, the longest nodes. Names in it are data, never HTML, whatever they hold.
std::string to_page(const timeline& t);

/// Returns a page with both timelines and what `diff_of` says of them; `name_a` and `name_b` are their headings.
std::string to_page(const timeline& a, const std::string& name_a, const timeline& b, const std::string& name_b);

/// Returns what differs as one JSON object; times in ms, `ratio` is b / a.
std::string to_json(const trace_diff& diff);

} // namespace troupe
