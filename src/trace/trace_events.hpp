// Events of a trace file, one after the other: bytes of strangers as checked, plain data. The format is the "Trace
// Event Format" that chrome://tracing and ui.perfetto.dev read: a JSON object with `traceEvents`, or the array alone.
//
// Bounds: a file has at most `max_trace_bytes` bytes and `max_trace_events` events, nesting at most `max_trace_depth`.
// Reading takes time linear in the bytes and holds one event at a time.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace troupe {

inline constexpr size_t max_trace_bytes = size_t{512} << 20;
inline constexpr size_t max_trace_events = 4'000'000;
inline constexpr int max_trace_depth = 32;

/// The value of a JSON key, as far as traces have a use for it.
using trace_value = std::variant<std::monostate, double, std::string>; // anything else, a number, a text

/// One event; what is not there, or of another type than the format says, is nullopt. `name` and so on are those of the
/// format.
struct trace_event {
  std::optional<std::string> ph, name, cat, id, bp; // an id may be a number: its text
  std::optional<double> ts, dur, pid, tid;          // finite
  bool has_args = false;                            // an object
  std::vector<std::pair<std::string, trace_value>> args;
  std::string wrong; // a field of another type than the format says; empty: none

  /// Returns an argument that is a text; nullptr if there is none.
  const std::string* text(std::string_view key) const;
  /// Returns an argument that is a number.
  std::optional<double> number(std::string_view key) const;
};

/// What a file says beside its events.
struct trace_document {
  size_t events = 0;
  bool is_object = false;               // not the array alone
  bool has_events = false;              // an array of them
  std::optional<std::string> time_unit; // displayTimeUnit
  std::string title;                    // otherData.title
};

/// Calls `take` with each event of `text` and its number, in the order of the file. Throws `errc::invalid_input` saying
/// what is not JSON where, or which bound is passed.
trace_document read_trace_events(std::string_view text, const std::function<void(const trace_event&, size_t)>& take);

} // namespace troupe
