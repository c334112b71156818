// A host that does not say what its program says: a hostile member of a cluster.
#pragma once

#include "remote/link.hpp"
#include "support/random_models.hpp"
#include "universe/story.hpp"

#include <deque>

namespace troupe::universe {

/// Changes what a host sends, frame by frame: leaves frames out, repeats old ones, swaps neighbours, cuts them off and
/// changes bytes of them. A number in a frame is a byte or a few, so a changed byte often is another valid message.
class lying_host {
public:
  /// Counts the lies in `tale`, which lives longer.
  lying_host(uint64_t seed, story& tale);

  /// Returns what is sent in the place of `sound`: nothing, it, or other frames.
  std::vector<remote::frame> instead_of(remote::frame sound);

private:
  bool lies();
  remote::frame changed(remote::frame f);

  story& tale_;
  test::random_source random_;
  const size_t sound_frames_; // of each that is not, on average
  std::deque<remote::frame> old_;
  std::vector<remote::frame> kept_back_; // the next one goes first
};

} // namespace troupe::universe
