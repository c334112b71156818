// What `troupe trace` prints.
#pragma once

#include "trace/trace_diff.hpp"
#include "trace/trace_summary.hpp"

#include <nlohmann/json.hpp>

namespace troupe::cli {

/// Prints how busy devices were and the longest nodes.
void print(const timeline& t, const trace_summary& summary);
nlohmann::ordered_json json_of(const timeline& t, const trace_summary& summary);

/// Prints what differs, at most `most` rows of each kind.
void print(const trace_diff& diff, size_t most);

} // namespace troupe::cli
