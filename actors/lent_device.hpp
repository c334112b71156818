// A device actor as a worker lends it to sessions of other hosts: messages to it, its answers as calls.
#pragma once

#include "actors/device_actor.hpp"
#include "remote/served_device.hpp"

namespace caf {
class actor_system;
}

namespace troupe::actors {

/// Returns the device that `handle` refers to. What is asked of it is answered exactly once: by `errc::device_lost` if
/// its actor ends.
remote::served_device_ptr lend(caf::actor_system& system, const device_handle& handle);

} // namespace troupe::actors
