// Chunks that go out together, in as few messages as their order allows.
//
// A device that waits for a peer's chunk keeps all that is sent to it later waiting. So a chunk must be sent after
// those that it waits for, whatever the device: then of all chunks that are sent and not begun, the oldest waits for
// none. If one message held a chunk and a later one that waits for a peer's, this would not be so: another session
// could send between this message and the peer's.
#pragma once

#include "run/commands.hpp"

#include <utility>
#include <vector>

namespace troupe {

/// What goes to a device of the plan, in one message.
using device_batch = std::pair<device_index, run_chunks>;

/// See the top of this file.
class chunk_batches {
public:
  /// Adds a chunk. `waits`: on its device, for a peer's that was added before.
  void add(device_index device, chunk_work work, bool waits);

  /// Returns the messages in the order in which they are to be sent; nothing is left.
  std::vector<device_batch> take();

private:
  std::vector<device_batch> batches_;
  size_t open_ = 0; // from here on they take more chunks; by device
};

} // namespace troupe
