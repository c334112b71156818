// The executions of one session on a worker: which chunk may run now, on which arena slot, and which executions have
// failed.
//
// A worker takes no session's word for the order of its chunks. Each execution is held to its plan on each device of
// the worker, by the code that a session itself goes by (`ready_set`): chunks of other devices count as run as soon as
// they could have been, since what they make comes with the chunks here. A slot belongs to one execution until its last
// chunk of the segment has ended. An execution that failed on one device has failed on all: no chunk of it runs
// until the session ends the execution. Not thread-safe.
#pragma once

#include "device/device.hpp"
#include "plan/cut/ready_set.hpp"

#include <map>
#include <memory>
#include <tuple>
#include <vector>

namespace troupe::remote {

class served_executions {
public:
  /// `most_chunks`: of the plans of all that runs together, since each execution has a state for every chunk of its
  /// plan.
  explicit served_executions(size_t most_chunks = size_t{1} << 26) : most_chunks_(most_chunks) {}

  using stop_flag = std::shared_ptr<std::atomic<bool>>;
  /// An execution, by the session's number, on one device of the worker.
  struct place {
    uint64_t execution = 0;
    uint32_t device = 0;

    auto operator<=>(const place&) const = default;
  };

  /// Takes a chunk that is to be sent to the device next; `self`: the device in the plan. Returns the execution's flag,
  /// which is set if it has failed: then the chunk is only to be answered. Throws `errc::invalid_input` if the plan
  /// does not allow the chunk now, or another execution has the slot.
  stop_flag begin(const place& at, const bound_plan_ptr& bound, device_index self, chunk_id chunk, uint32_t slot);

  /// Says how a chunk that has begun ended. Returns whether its execution has failed by that: then it is to be stopped,
  /// once the session was told, which would else hear first of other chunks that they were dropped.
  bool finish(const place& at, chunk_id chunk, bool ok);

  /// The execution has failed, here or elsewhere. Returns whether it is known here and had not failed yet.
  bool stop(uint64_t execution);

  /// Forgets an execution on a device; returns whether it was known there. Throws `errc::invalid_input` if chunks of it
  /// have not ended.
  bool end(const place& at);

  void stop_all();
  /// Forgets all executions that have no chunk under way, and returns where they were.
  std::vector<place> take_idle();

  /// Returns how many executions are known, each counted once a device.
  size_t size() const { return places_.size(); }

private:
  /// A segment of an execution on a device.
  struct order {
    order(bound_plan_ptr b, device_index d, uint32_t s);
    /// Counts chunks of other devices as run as far as that goes.
    void pass_others();

    const bound_plan_ptr bound;
    const device_index self;
    const uint32_t slot;
    ready_set ready;
    std::vector<chunk_id> made_ready; // since `pass_others`
  };
  struct place_state {
    std::unique_ptr<order> running; // null between segments, and after a failure once all chunks have ended
    size_t unfinished = 0;          // chunks that have begun
  };
  struct execution_state {
    stop_flag stop = std::make_shared<std::atomic<bool>>(false);
    size_t places = 0;
  };
  using slot_key = std::tuple<uint32_t, uint64_t, uint32_t>; // device, layout, slot

  place_state& add(const place& at);
  void check_order(const place& at, place_state& p, const bound_plan_ptr& bound, device_index self, uint32_t slot);
  void leave_slot(const place& at, place_state& p);
  void forget(std::map<place, place_state>::iterator found);

  const size_t most_chunks_;
  size_t chunks_ = 0; // of what runs
  std::map<uint64_t, execution_state> executions_;
  std::map<place, place_state> places_;
  std::map<slot_key, uint64_t> slots_; // executions that have them
};

} // namespace troupe::remote
