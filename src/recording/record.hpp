// What a recording is made of: what happened to a session, in its order, and what the session asked for then. All of it
// is records of one form, so that keeping, reading, comparing and printing them is one piece of code each.
//
// Records name runs, executions and bindings by the numbers that these had in the process. `numbering` counts them in
// the order in which records name them first: by that, two sessions that did the same are equal.
#pragma once

#include "recording/facts.hpp"
#include "run/commands.hpp"

#include <unordered_map>

namespace troupe::recording {

/// What a record says, and what its lists hold. The order is that of the file's numbers.
enum class kind : uint8_t {
  // -- events: what happened to the session. After each of them but `time` and `chunk_begun`, it was asked for its
  // commands, which follow.
  time,              // numbers: ns since the epoch of the session's clock; for the events that follow
  run_started,       // as `recorder::add` says it and `recorded_runs::make` reads it
  chunk_begun,       // execution; chunk, then what was made (`made_number`); values: of form `otherwise`
  chunk_ended,       // execution; chunk, ns busy, errc, then the same; texts: message if it failed
  plan_installed,    // binding; device, index in the plan, errc; texts: message if it failed
  value_fetched,     // run; errc; texts: input, message if it failed; values: it
  control_continued, // execution; chunk
  plan_made,         // numbers: job, errc; texts: message if it failed
  plan_asked,        // numbers: query; texts: names of inputs; values: they
  run_cancelled,     // run
  device_lost,       // numbers: device; texts: why
  device_leaves,     // numbers: device; texts: why
  device_joined,     // texts: it, as `encode` of session_facts.hpp has it
  memory_changed,
  ticked,
  closed,
  // -- notes
  ledger_answered, // numbers: how many usual answers of ledgers came before, the unusual one
  session_broke,   // numbers: errc; texts: message. It threw: its end
  recording_ended, // texts: why what follows is not recorded
  // -- commands: what the session asked for
  install_plan,     // binding; device, index in the plan, bytes of an arena slot
  run_chunks,       // binding, execution of each; device, then of each: chunk, slot, how many values it reads, makes
  stop_execution,   // execution; device
  end_execution,    // execution; device
  retire_plan,      // binding; device
  fetch_value,      // run; device; texts: input
  abandon_device,   // numbers: device
  let_device_go,    // numbers: device
  answer_run,       // run; errc; texts: message if it failed, else the names of its outputs
  continue_control, // execution; chunk
  make_plan,        // numbers: job
  answer_query,     // numbers: query, errc; texts: message if it failed
  give_memory_back, // numbers: bytes by device
};
inline constexpr uint8_t kinds = static_cast<uint8_t>(kind::give_memory_back) + 1;

/// Returns the enumerator's name.
std::string_view to_string(kind k);
inline bool is_event(kind k) {
  return k < kind::ledger_answered;
}
inline bool is_command(kind k) {
  return k >= kind::install_plan;
}

/// What has a number that is unique in the process only.
enum class named : uint8_t { run, execution, binding };

struct name {
  named what{};
  uint64_t number = 0;

  bool operator==(const name&) const = default;
};

struct record {
  recording::kind kind{};
  std::vector<name> names;
  std::vector<int64_t> numbers;
  std::vector<std::string> texts;
  std::vector<value_facts> values;

  /// Makes it another one, with these and no more, whose lists keep their memory.
  void reset(recording::kind of, std::initializer_list<name> named = {}, std::initializer_list<int64_t> numbered = {});
  /// Adds how something ended: the code, and the message if it failed.
  void add(const failure& why);
  bool operator==(const record&) const = default;
};

/// Writes a record without its texts and values, which follow if it `has_more`; there is room for `most_bytes` of it.
/// Returns its end. A session waits for that at each event, and most records have a few names and numbers alone.
uint8_t* put_head(uint8_t* at, kind what, std::span<const name> names, std::span<const int64_t> numbers, bool has_more);
size_t most_bytes(std::span<const name> names, std::span<const int64_t> numbers);
/// Reads the next record of bytes that may be anything: throws `errc::invalid_input`.
void get(wire::reader& in, record& r);

/// Returns a record as a line of text, without its end.
std::string to_text(const record& r);

/// Makes `into` the record of what a session has asked for.
void describe(const command& asked, record& into);

/// Numbers of runs, executions and bindings by the order in which records name them first, each kind from 1.
class numbering {
public:
  /// Returns the record with these numbers.
  record renumbered(record r);
  /// Returns the number of what has that number in the process; gives it the next one if it has none.
  uint64_t of(const name& n);
  /// The same; 0 if it has none.
  uint64_t find(const name& n) const;
  /// Returns the number in the process of what has this number here; 0 if there is none.
  uint64_t in_process(const name& n) const;

private:
  struct book {
    std::unordered_map<uint64_t, uint64_t> here; // by the number in the process
    std::vector<uint64_t> there;                 // by the number here, from 1
  };
  std::array<book, 3> books_;
};

} // namespace troupe::recording
