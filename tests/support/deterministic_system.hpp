// An actor system in which nothing happens unless the test lets it: CAF's testing scheduler, driven from Catch2.
#pragma once

#include "actors/coordinator.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <caf/send.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <deque>

namespace troupe::test {

/// The messages to a scripted device, in order.
struct device_log {
  std::vector<install_plan> installs;
  std::vector<size_t> batches; // chunks in each run_chunks
  std::deque<chunk_work> chunks;
  std::vector<execution_id> stopped, ended;
  std::vector<uint64_t> retired;
  std::deque<fetch_tensor> fetches;
  std::chrono::milliseconds install_delay{0}; // set by the test: how late installs are answered
  failure install_answer;                     // set by the test: how they end
};

/// A device actor without a device: it writes down its messages; the test answers chunks in its place.
inline actors::device_ref::behavior_type scripted_device(actors::device_ref::pointer self, device_log* log) {
  using namespace actors;
  return {
      [](open_device) { return device_opened{}; },
      [=](const install_plan& m) {
        log->installs.push_back(m);
        const auto to = caf::actor_cast<completion_sink>(self->current_sender());
        if (log->install_delay.count() > 0)
          self->delayed_send(to, log->install_delay, plan_installed{m.bound->id, m.self, log->install_answer});
        else
          self->send(to, plan_installed{m.bound->id, m.self, log->install_answer});
      },
      [=](run_chunks& m) {
        log->batches.push_back(m.works.size());
        for (chunk_work& work : m.works)
          log->chunks.push_back(std::move(work));
      },
      [](const run_lent&) {},
      [=](const stop_execution& m) { log->stopped.push_back(m.execution); },
      [=](const end_execution& m) { log->ended.push_back(m.execution); },
      [=](const retire_plan& m) { log->retired.push_back(m.bound_plan); },
      [=](const fetch_tensor& m) { log->fetches.push_back(m); },
      [](const put_tensor&) {},
      [](query_stats) { return device_stats{}; },
  };
}

/// A session's coordinator, or several, over scripted devices "d0", "d1" ….
class deterministic_session {
public:
  deterministic_session(graph model, size_t device_count, const session_options& options = {},
                        std::chrono::milliseconds device_timeout = std::chrono::milliseconds(0),
                        completion_mode completion = completion_mode::device, int64_t memory_bytes = int64_t{1} << 40);
  ~deterministic_session();

  /// Opens another session over the same devices.
  actors::coordinator_ref open_session(graph model, const session_options& options = {},
                                       std::chrono::milliseconds device_timeout = std::chrono::milliseconds(0),
                                       completion_mode completion = completion_mode::device);

  /// Starts a run; nothing has happened yet.
  std::future<run_result> run(named_tensors inputs, const run_options& options = {});
  std::future<run_result> run_in(const actors::coordinator_ref& session, named_tensors inputs,
                                 const run_options& options = {});
  /// Lets every actor work off its mailbox; time stands still.
  void settle();
  void advance(std::chrono::milliseconds time);

  device_log& log(size_t device) { return logs_[device]; }
  size_t chunks_waiting() const;
  /// Answers the oldest chunk of a device with zeros, as a null device would, or with `result`.
  void complete(size_t device, chunk_result result = {});
  /// Answers all chunks until none is left.
  void complete_all();
  void send(chunk_ended message);
  /// Answers the oldest fetch of a device.
  void answer_fetch(size_t device, fetch_result result);
  void kill(size_t device);
  /// Lets another session say that a device is lost, whose actor hangs: it neither answers nor ends.
  void lose_elsewhere(size_t device) { devices_.at(device).health->lost = true; }

  actors::coordinator_ref coordinator() const { return coordinator_; }
  uint64_t last_ticket() const { return last_ticket_; }

private:
  caf::actor_system_config config_;
  std::unique_ptr<caf::actor_system> system_;
  std::vector<device_log> logs_;
  std::vector<actors::device_handle> devices_;
  std::vector<actors::coordinator_ref> coordinators_;
  actors::coordinator_ref coordinator_; // the first
  uint64_t last_ticket_ = 0;
};

/// Returns whether the answer is there.
template <class T>
bool is_ready(const std::future<T>& f) {
  return f.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

/// Returns the error that a future holds; fails the test if it holds none.
template <class T>
error error_of(std::future<T>& f) {
  try {
    f.get();
  } catch (const error& e) {
    return e;
  }
  return {errc::internal, "no error"};
}

} // namespace troupe::test
