// Which chunks of one execution may be sent to their devices: a pure state machine over an immutable plan.
//
// Ordering rule: a chunk is ready when its predecessors on its own device have been sent, those on peers (`are_peers`)
// have begun, and those on other devices are complete on the host; a device keeps the order in which chunks were sent
// to it. A chunk has begun when its device says that its peers may wait for it, which it need not say: then they wait
// until it is complete. With `completion_mode::host` every predecessor must be complete. Roots are found by
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

  /// States that a ready chunk has been sent; appends chunks that this makes ready.
  void sent(chunk_id chunk, std::vector<chunk_id>& ready);

  /// States that a sent chunk has begun; appends chunks that this makes ready. Nothing if it is complete already.
  void begun(chunk_id chunk, std::vector<chunk_id>& ready);

  /// States that a sent chunk is complete; appends chunks that this makes ready.
  void completed(chunk_id chunk, std::vector<chunk_id>& ready);

  /// Returns whether a chunk may be sent now.
  bool is_ready(chunk_id chunk) const { return chunk < states_.size() && states_[chunk] == state::ready; }

  /// Returns whether a chunk has been sent and has neither begun nor ended, as far as is known.
  bool is_sent(chunk_id chunk) const { return chunk < states_.size() && states_[chunk] == state::sent; }

  /// Returns whether some predecessor of a chunk is not complete: then the chunk cannot be, whatever its device says.
  bool awaits_others(chunk_id chunk) const;

  /// Returns whether every chunk of the segment is complete.
  bool finished() const { return remaining_ == 0; }

private:
  enum class state : uint8_t { waiting, ready, sent, begun, complete };
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
