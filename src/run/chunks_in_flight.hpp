// The chunks of an execution that devices hold: sent, and not ended.
#pragma once

#include "plan/plan.hpp"

namespace troupe {

/// See the top of this file.
class chunks_in_flight {
public:
  /// None yet, of a plan that outlives it.
  explicit chunks_in_flight(const plan& p) : plan_(p), sent_(p.chunks.size()), counts_(p.devices.size()) {}

  /// Called when a chunk has been sent.
  void add(chunk_id chunk);
  bool contains(chunk_id chunk) const { return chunk < sent_.size() && sent_[chunk]; }
  /// Called when a chunk has ended. Returns false if it was not in flight: the message is spurious.
  bool end(chunk_id chunk);
  /// Forgets what a lost device still holds.
  void forget(device_index device);

  /// Returns whether no device holds a chunk.
  bool empty() const;
  bool on_device(device_index device) const { return counts_[device] > 0; }
  /// Returns whether a device holds a chunk that waits for no other chunk.
  bool owes_answer(device_index device) const;

private:
  const plan& plan_;
  std::vector<bool> sent_;       // by chunk
  std::vector<uint32_t> counts_; // by device
};

} // namespace troupe
