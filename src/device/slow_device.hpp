// A device at a part of its speed: what another device does, and a wait after each chunk. So devices of unequal speed
// can be had on any machine, to see what placement makes of them.
#pragma once

#include "device/device.hpp"

namespace troupe {

/// Returns a device called `name` that does what `inner` does, at `percent` (1 … 100) of its speed: a chunk ends so
/// much later. `inner` computes inside `submit`, as the CPU does.
std::unique_ptr<device> make_slow_device(std::unique_ptr<device> inner, std::string name, int percent);

} // namespace troupe
