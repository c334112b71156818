// The actor that owns a device: one implementation for all of them, whatever they compute with.
//
// The device is made by a factory inside the actor (in its own thread where it is spawned detached) when `open_device`
// arrives, and destroyed with the actor's state. Chunks are submitted in the order of their arrival. Once a chunk of an
// execution has failed, or the execution's stop flag is set, its later chunks are answered with errc::cancelled without
// being run; so are chunks of a plan whose install has failed, which may be on their way already. A device that reports
// errc::device_lost takes its actor with it, so that every coordinator gets a down_msg.
#pragma once

#include "actors/entry.hpp"
#include "actors/messages.hpp"
#include "launch/kernel_choices.hpp"
#include "run/shared_ledger.hpp"

#include <caf/stateful_actor.hpp>

#include <functional>
#include <mutex>
#include <unordered_set>

namespace troupe::actors {

/// What all who use a device see of it without asking. Shared by the actor, the host and the coordinators.
struct device_health {
  /// Set by the first user that finds the device gone; it never comes back. Another one may join under its name.
  std::atomic<bool> lost{false};
  /// Grows with every answer of the device: a device that does not answer while it has work is silent.
  std::atomic<uint64_t> progress{0};
  /// Whether silence may mean that it is gone; set when the device is opened, see `device::may_hang`.
  std::atomic<bool> may_hang{true};

  /// Says that it leaves, why, and what is held by those who still need it: when the last one lets go of that, the
  /// device may go.
  void leave(std::string because, const std::shared_ptr<const void>& need);
  /// If it leaves: returns what is held by those who need it, null if no one needs it any more, and why it leaves.
  std::optional<std::pair<std::shared_ptr<const void>, std::string>> leaves() const;

  /// Says that it is lost, and why.
  void lose(std::string because);
  /// Says that it is lost; others know why.
  void give_up();
  /// Called by each who finds that it is lost, from any thread (`device::if_lost`). Set when it is
  /// opened.
  std::function<void()> on_lost;
  /// Returns what `lose` was told first, else `otherwise`.
  std::string because(std::string_view otherwise) const;

private:
  mutable std::mutex mutex_;
  std::string because_; // this and the next: guarded by mutex_
  std::string leaves_because_;
  std::weak_ptr<const void> need_;
};

/// An open device as coordinators know it.
struct device_handle {
  device_info info;
  /// Null once the device is lost: an actor's thread ends when the last handle to it is gone, and hosts may be lost and
  /// come back without end.
  device_ref actor;
  std::shared_ptr<device_health> health;
  std::shared_ptr<shared_ledger> memory;
  std::shared_ptr<kernel_choices> kernels; // of a GPU of this process
};

/// The devices of an engine, lost ones included, in the order in which they joined. Never changed: a device that joins
/// makes a new list.
class device_list {
public:
  device_list() : device_list(std::vector<device_handle>{}) {}
  explicit device_list(std::vector<device_handle> all)
      : all_(std::make_shared<const std::vector<device_handle>>(std::move(all))) {}

  const std::vector<device_handle>& operator*() const& { return *all_; }
  /// A loop over what a temporary list refers to would go on without the list: give it a name.
  const std::vector<device_handle>& operator*() const&& = delete;
  const std::vector<device_handle>* operator->() const { return all_.get(); }

private:
  std::shared_ptr<const std::vector<device_handle>> all_;
};

/// Executions whose later chunks a device drops. Completions, and so failures, may come from any thread.
class drop_list {
public:
  /// Adds an execution; `announce` has run before anybody sees it here.
  void add(execution_id execution, const std::function<void()>& announce);
  void remove(execution_id execution);
  bool contains(execution_id execution) const;

private:
  std::atomic<bool> used_{false}; // the common case is an empty list: no lock then
  mutable std::mutex mutex_;
  std::vector<execution_id> executions_;
};

struct device_actor_state {
  static constexpr const char* name = "troupe.device";

  /// A device must not throw where it has callbacks to answer by. If one does, its state is unknown: it counts as lost.
  template <class Message>
  void failed(const Message&, const failure& why) {
    lose(why);
  }
  void lose(const failure& why);

  caf::scheduled_actor* self = nullptr;
  device_factory make;
  std::shared_ptr<device_health> health;
  std::unique_ptr<device> owned;
  std::shared_ptr<drop_list> dropped = std::make_shared<drop_list>();
  std::unordered_set<uint64_t> installed; // bound plans: chunks of others do not get to the device
  bool stays_awake = false;               // for a while after each chunk, if its thread is its own (awake.hpp)
  std::chrono::steady_clock::time_point awake_until{};
};

/// The behaviour; spawn it with CAF, detached if the device blocks its thread.
device_ref::behavior_type device_actor(device_ref::stateful_pointer<device_actor_state> self, device_factory make,
                                       std::shared_ptr<device_health> health);

} // namespace troupe::actors
