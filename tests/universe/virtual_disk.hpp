// A disk that fills up: what `posix_fallocate` says to virtual threads.
#pragma once

namespace troupe::universe {

/// From now on, files get no room with this probability.
void set_full_disk_chance(double chance);

} // namespace troupe::universe
