// Which chunks of one execution may be sent to their devices: a pure state machine over an immutable plan.
//
// Ordering rule: a chunk is ready when its predecessors on its own device, and those on peers (`are_peers`) that were
// sent for peers to wait for, have been sent, and all others are complete on the host; a device keeps the order in
// which chunks were sent to it. With `completion_mode::host` every predecessor must be complete. Roots are found by
// `chunk::initial_dependency_count`, so nothing is ever sent twice.
//
// A device that waited for a peer which is lost meanwhile has computed with what was not there. So a chunk that has
// ended counts as complete only after all its predecessors (`awaits_others`): those on peers, and those on its own
// device, whose results bear on it.
#pragma once

#include "plan/plan.hpp"

namespace troupe {

/// Dependency counters of one execution (see the top of this file). Calls that break the order (a chunk sent that is
/// not ready, or completed that was not sent) throw `errc::internal`.
class ready_set {
public:
  explicit ready_set(const plan& p, completion_mode mode = completion_mode::device);

  /// Resets the counters for `segment` and appends its roots to `ready`. A segment may have no chunks.
  void start(uint32_t segment, std::vector<chunk_id>& ready);

  /// States that a ready chunk has been sent; appends chunks that this makes ready. `peers_wait`: those on peers of its
  /// device are among them, since these wait for it themselves.
  void sent(chunk_id chunk, std::vector<chunk_id>& ready, bool peers_wait = false);

  /// States that a sent chunk is complete; appends chunks that this makes ready.
  void completed(chunk_id chunk, std::vector<chunk_id>& ready);

  /// Returns whether a chunk may be sent now.
  bool is_ready(chunk_id chunk) const { return chunk < states_.size() && states_[chunk] == state::ready; }

  /// Returns whether a chunk that is ready has to wait, on its device, for chunks on peers.
  bool awaits_peers(chunk_id chunk) const;

  /// Returns whether some predecessor of a chunk is not complete: then the chunk cannot be, whatever its device says.
  bool awaits_others(chunk_id chunk) const;

  /// Returns whether every chunk of the segment is complete.
  bool finished() const { return remaining_ == 0; }

private:
  enum class state : uint8_t { waiting, ready, sent, sent_to_peers, complete };
  /// Whose chunks depend on a chunk.
  enum class reader : uint8_t { own, peer, other };

  void advance(chunk_id chunk, state from, state to);
  reader reader_of(chunk_id chunk, chunk_id next) const;
  /// Decrements the counters of `chunk`'s dependents on its own device, on peers, or on others.
  void release(chunk_id chunk, reader which, std::vector<chunk_id>& ready);

  const plan& plan_;
  completion_mode mode_;
  std::vector<uint32_t> missing_; // by chunk
  std::vector<state> states_;     // by chunk
  uint32_t remaining_ = 0;
};

} // namespace troupe
