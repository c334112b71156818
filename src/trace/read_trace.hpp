// Trace files, read back: what `to_chrome_json` wrote, and what other programs write as far as a timeline can show it.
#pragma once

#include "trace/timeline.hpp"

namespace troupe {

/// Returns the timeline of a trace file, its times counted from the earliest. Of files that others wrote each thread is
/// a lane; B with E and X are bars of kind `other`. Bars that overlap are kept; what the format forbids otherwise
/// (`check_trace`) is left out. Throws `errc::invalid_input`: no trace, more than is read (trace_events.hpp), times
/// beyond sixty years, no bar at all.
timeline read_trace(std::string_view text);

} // namespace troupe
