// A bound plan that a session has on a device of the worker. The device keeps the plan as long as this object lives, so
// chunks that run by the plan hold the object.
#pragma once

#include "remote/served_device.hpp"
#include "remote/session_memory.hpp"
#include "remote/value_room.hpp"

namespace troupe::remote {

class lent_plan {
public:
  /// The plan has been installed on `on`, which is the worker's device `index` and the plan's `self`, and its memory
  /// taken; `held` is that of the bound plan itself.
  lent_plan(served_device_ptr on, uint32_t index, bound_plan_ptr bound, device_index self,
            std::shared_ptr<session_memory> memory, held_memory held)
      : bound(std::move(bound)), self(self), on_(std::move(on)), index_(index), memory_(std::move(memory)),
        held_(std::move(held)) {}
  ~lent_plan() {
    capture([&] {
      on_->retire(bound->id);
      memory_->give_back(index_, *bound, self); // after the device was told: the next user asks the device later
    });
  }
  lent_plan(const lent_plan&) = delete;
  lent_plan& operator=(const lent_plan&) = delete;

  /// Takes what arena slots up to `slot` need; false if there is no room now.
  bool take_slot(uint32_t slot) const { return memory_->take_slot(index_, *bound, self, slot); }

  const bound_plan_ptr bound;
  const device_index self;

private:
  const served_device_ptr on_;
  const uint32_t index_;
  const std::shared_ptr<session_memory> memory_;
  const held_memory held_;
};

using lent_plan_ptr = std::shared_ptr<const lent_plan>;

} // namespace troupe::remote
