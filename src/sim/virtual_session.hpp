// A session in virtual time: the session machine of a real one (run/session_machine.hpp), whose commands virtual
// devices carry out.
//
// Plans are made at once, and installs take no time: what is simulated is a session that has run before. The
// coordinator does one thing after the other: each chunk's end takes it a stated time, which is part of
// `device_profile::chunk_s`.
#pragma once

#include "run/session_machine.hpp"
#include "run/shared_ledger.hpp"
#include "sim/made_up_values.hpp"
#include "sim/virtual_devices.hpp"

namespace troupe::sim {

/// The time of sessions and streams: nanoseconds since the beginning of the simulation.
inline run_time time_of(seconds s) {
  return run_time(std::chrono::nanoseconds(static_cast<int64_t>(s * 1e9)));
}

/// What happened to one chunk of one execution.
struct chunk_record {
  execution_id execution = 0;
  chunk_id chunk = 0;
  size_t device = 0;
  uint64_t because = 0; // the number of the chunk whose end sent it; 0: a run that began
  std::shared_ptr<const bound_plan> bound;
  chunk_times times;
  seconds told = 0; // the coordinator knew of its end
};

/// The machines of a simulation: what all its sessions share.
struct virtual_world {
  virtual_world(const cluster& c, double noise, uint64_t seed);

  /// Takes a device out now; for sessions, see `virtual_session::lose`.
  void lose(size_t device);
  /// Forgets what devices and links have done so far.
  void begin_to_count();
  /// Adds one like a device that was lost, under its name; returns its number.
  size_t bring_back(size_t device);

  event_queue events;
  shared_links links{events};
  virtual_devices devices;
  made_up_values values;
  double coordinator_s = 0;
  seconds begin = 0; // since when it counts
  double plan_s = 0; // real time that plans took which were made meanwhile
  std::vector<device_info> infos;
  std::map<std::pair<std::string, uint64_t>, size_t> index_of; // by name and incarnation
  std::vector<device_routes> routes;                           // by device
  std::vector<std::shared_ptr<shared_ledger>> ledgers;         // by device
  std::vector<int64_t> used_bytes, peak_bytes;                 // by device
  /// Called for each chunk that has ended, if it is set.
  std::function<void(const chunk_record&)> on_chunk;
};

/// See the top of this file. Not thread-safe.
class virtual_session {
public:
  virtual_session(virtual_world& world, std::shared_ptr<session_plans> plans);
  virtual_session(const virtual_session&) = delete;
  virtual_session& operator=(const virtual_session&) = delete;

  /// Runs the model; calls `done` at the virtual time of the answer.
  using run_done = std::function<void(run_answer&)>;
  void run(named_tensors inputs, run_done done);

  void lose(size_t device, const std::string& why);
  /// Hears of a device that was added to the world.
  void add(size_t device);

private:
  struct installed {
    bound_plan_ptr bound;
    std::vector<chunk_price> prices;
  };

  template <class Event>
  void tell(Event&& event);
  void carry_out(device_order& order);
  void carry_out(abandon_device&) {} // `lose` has been told to all
  void carry_out(let_device_go&) {}
  void carry_out(run_answer& answer);
  void carry_out(continue_control& next);
  void carry_out(plan_wanted& wanted);
  void carry_out(query_answer&) {}
  void carry_out(give_memory_back& give) { give(); }

  void take(size_t device, install_plan& order);
  void take(size_t device, run_chunks& order);
  void take(size_t, stop_execution&) {}
  void take(size_t, end_execution&) {}
  void take(size_t, retire_plan& order) { retired_.push_back(order.bound_plan); }
  void take(size_t, fetch_tensor& order);
  void ended(const std::shared_ptr<chunk_work>& work, const installed& of, chunk_record record);
  std::shared_ptr<ledger_account> account(size_t device);

  virtual_world& world_;
  std::unique_ptr<session_machine> machine_;
  std::unordered_map<uint64_t, std::shared_ptr<const installed>> plans_; // by bound plan
  std::vector<uint64_t> retired_;
  std::unordered_map<uint64_t, run_done> runs_; // by ticket
  lane_clock coordinator_;                      // its thread
  uint64_t because_ = 0;                        // the chunk whose end is being told
};

} // namespace troupe::sim
