// One step of a loop in which a thread looks again and again for what another thread does.
#pragma once

namespace troupe {

/// Leaves the core to its other hardware thread for some tens of cycles.
inline void cpu_relax() {
  __builtin_ia32_pause();
}

} // namespace troupe
