// A recording, done again: what happened to the recorded session is told to a new one, and what that asks for is
// compared with what the recorded one asked for. No device computes and no time passes. Two sessions of the same code
// ask for the same, so a difference is a fault, or a change of the code.
#pragma once

#include "recording/record_file.hpp"

#include <functional>

namespace troupe::recording {

struct replay_result {
  uint64_t events = 0, commands = 0, runs = 0; // that were told, compared, answered
  /// How the sessions differ, with the number of the record; empty if they do not.
  std::string difference;
  /// Why the recording ends before its session did; empty if it does not.
  std::string ended;
};

/// Gives a recorded device its measured times. Throws what it likes.
using measure_device = std::function<void(device_facts&)>;

/// Tells a new session of `source`, the recorded session's model, what `recorded` says. `policy_plugin`: the session's,
/// if it had one. A recording may come from a stranger, so the library that it names is not opened. Throws
/// `errc::invalid_input` if a record is malformed, or the first ones have been dropped; `errc::invalid_argument` if a
/// plug-in is needed; and what making the session throws.
replay_result replay(const recorded_session& recorded, graph source, const measure_device& measure,
                     const std::string& policy_plugin = {});

/// Calls `each` with the text of each record, in order. Throws `errc::invalid_input` if one is malformed.
void for_each_text(const recorded_session& recorded,
                   const std::function<void(uint64_t number, const std::string&)>& each);

} // namespace troupe::recording
