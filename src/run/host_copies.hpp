// Inputs that are on devices: checked before each attempt, and brought to the host if the plan wants them elsewhere.
// Not thread-safe.
#pragma once

#include "run/commands.hpp"
#include "run/session_devices.hpp"

#include <algorithm>
#include <map>

namespace troupe {

class host_copies {
public:
  /// Fetches are added to `commands`.
  host_copies(const session_plans& plans, const session_devices& devices, std::vector<command>& commands)
      : plans_(plans), devices_(devices), commands_(commands) {}

  /// Makes those device inputs ordinary ones that are in the host's memory; throws if one is on a device that is gone.
  void check(run_request& request) const;
  /// Asks for host copies of the device inputs `names` that have none yet; returns whether there are such: then the
  /// attempt is begun again after they have come.
  bool ask(const run_request_ptr& request, const std::vector<std::string>& names);
  /// Returns the device from which that copy is awaited; nullopt if the run does not wait for it.
  std::optional<size_t> source_of(const tensor_fetched& answer) const;
  /// Takes a copy that is awaited. Returns the run if that was its last; else null.
  run_request_ptr take(tensor_fetched& answer);

  bool are_awaited_from(size_t device) const;
  /// Returns the runs that wait for copies from `device`, which are forgotten.
  std::vector<run_request_ptr> forget_device(size_t device);
  void forget(const run_request& request) { waiting_.erase(request.ticket); }

private:
  /// A run that waits for copies.
  struct waiting_run {
    run_request_ptr request;
    std::map<std::string, size_t> awaited; // input → device

    bool waits_for(size_t device) const {
      return std::ranges::any_of(awaited, [&](const auto& a) { return a.second == device; });
    }
  };

  /// Returns a run's input that is on a device; null if it is not.
  device_tensor resident_of(const run_request& request, const std::string& input) const;

  const session_plans& plans_;
  const session_devices& devices_;
  std::vector<command>& commands_;
  std::map<uint64_t, waiting_run> waiting_; // by ticket
};

} // namespace troupe
