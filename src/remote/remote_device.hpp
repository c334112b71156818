// A device of another host, as a `device` like any other: what it is told goes over the host's link, what it answers
// comes back.
//
// What a chunk reads is sent if it is short, else offered for the worker to pull; what other hosts keep, the worker
// pulls from there. What a chunk makes stays there, unless this process wants it. Bound plans are named by number: the
// worker makes them again.
#pragma once

#include "remote/host_client.hpp"

namespace troupe::remote {

/// Returns device `index` of a host.
std::unique_ptr<device> make_remote_device(std::shared_ptr<host_client> host, uint32_t index);

} // namespace troupe::remote
