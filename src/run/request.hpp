// One run on its way through a session: what the caller gave, and what is added to it while the run goes on.
#pragma once

#include "base/error.hpp"
#include "device/moved_value.hpp"
#include "troupe/options.hpp"
#include "troupe/results.hpp"

#include <new>
#include <optional>

namespace troupe {

/// The session's time; it need not be a clock's.
using run_time = std::chrono::steady_clock::time_point;

/// An error as a value: what crosses message boundaries instead of exceptions.
struct failure {
  errc code = errc::internal;
  std::string message; // empty if there is none

  bool failed() const { return !message.empty(); }
};

/// Calls `body`; returns what it threw as a value. The one place where exceptions end.
template <class Body>
failure capture(Body&& body) {
  try {
    body();
    return {};
  } catch (const error& e) {
    return {e.code(), *e.what() ? e.what() : "unknown error"};
  } catch (const std::bad_alloc&) {
    return {errc::out_of_memory, "the host is out of memory"};
  } catch (const std::exception& e) {
    return {errc::internal, std::string("internal error: ") + e.what()};
  }
}

/// An output of the session and the input of the model that a bound session gives it to, by position.
struct carried_pair {
  size_t output = 0, input = 0;
};

/// A value that a bound session hands from run to run. A decoder has many, and its steps are short: what a chunk has
/// left on a device goes on as it is, so that no reference to a handle is counted, in a cache line that another thread
/// has touched last.
class carried_value {
public:
  carried_value() = default;
  /// What a chunk has left on a device, and nowhere else.
  explicit carried_value(value_ref left) : value_(std::move(left)) {}
  explicit carried_value(device_tensor handle);

  explicit operator bool() const { return value_ != nullptr; }
  /// Returns what a run reads.
  const value_ref& value() const { return value_; }
  /// Returns its handle; null if there is no value.
  const device_tensor& handle() const;

private:
  value_ref value_;
  device_tensor on_host_; // the handle of one that is in the host's memory
};

/// Values by pair of a bound session, all held as one.
using carried_bundle = std::shared_ptr<const std::vector<carried_value>>;

/// What a bound session hands a run and takes from it, pair by pair, without names.
struct carried_values {
  std::shared_ptr<const std::vector<carried_pair>> pairs = no_pairs();
  carried_bundle given = no_values(); // an element is empty if the caller gives that input by name
  carried_bundle made = no_values();  // once the run has ended well

  bool empty() const { return pairs->empty(); }
  /// Returns the handle of what is given for an input; null if nothing is.
  const device_tensor& find(size_t input) const;
  /// Calls `visit(input, value)` for what is given.
  template <class Visit>
  void for_each_given(Visit&& visit) const {
    for (size_t i = 0; i < given->size(); ++i)
      if (const carried_value& value = (*given)[i])
        visit((*pairs)[i].input, value);
  }

private:
  /// One for all runs that carry nothing.
  static const std::shared_ptr<const std::vector<carried_pair>>& no_pairs();
  static const carried_bundle& no_values();
};

/// One run. The inputs stay until it has ended, for a run on other devices.
struct run_request {
  run_request(named_tensors in, run_options how, carried_values across = {});

  /// Unique in the process; stays the same when the run is done again after the loss of a device.
  const uint64_t ticket;
  named_tensors inputs;
  run_options options;
  carried_values carried;
  const run_time started; // when the caller called, by the steady clock
  /// Whether nothing is run: host copies of `options.device_inputs` are wanted, as outputs.
  bool only_fetches = false;
  /// Whether nothing is run: what a run would need first is made, its plan on its devices too. The result is empty.
  bool only_prepares = false;

  // What the session adds:
  std::optional<run_time> deadline; // by the session's time; empty if there is no limit
  bool answered = false;
  run_stats stats;
  int shortages = 0;    // how often a device had less memory for it than it claimed
  std::string shortage; // the last of them
};
using run_request_ptr = std::shared_ptr<run_request>;

/// Returns a caller's time limit; nullopt if there is none: zero, and more than a hundred years, such as
/// milliseconds::max(), with which clocks would overflow. Throws `errc::invalid_argument` where it is negative, naming
/// it by `name`.
std::optional<std::chrono::milliseconds> time_limit(std::chrono::milliseconds given, std::string_view name);

} // namespace troupe
