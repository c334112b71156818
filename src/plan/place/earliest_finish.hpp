// Nodes given to devices one after the other, each to the one that would finish it first: what list-scheduling policies have in common.
//
// Moves between devices, and the answers that they wait for, count. A device that idles while it waits may be given a short node
// meanwhile (insertion), among the newest of its pauses.
#pragma once

#include "plan/place/policies.hpp"

#include <deque>

namespace troupe {

/// See the top of this file.
class earliest_finish {
public:
  explicit earliest_finish(placement_problem& problem);

  /// Places a node, after those that make its operands. Throws `errc::unsupported` if no device can run it.
  void place(node_id n);

  /// Returns the devices that may run a node: regular ones, else fallback ones. Valid until the next call.
  const std::vector<device_index>& candidates(node_id n);

  /// Returns the device of every node, after all have been placed.
  placed_nodes take() { return std::move(placed_); }

private:
  /// When a device is busy.
  class timeline {
  public:
    /// Returns the earliest start of a piece of work that is ready at `ready`.
    double earliest(double ready, double duration) const;
    void occupy(double start, double duration);

  private:
    struct pause {
      double begin, end;
    };
    void remember(pause p);

    std::deque<pause> pauses_;
    double end_ = 0;
  };

  const device_info& device(device_index d) const { return problem_.devices()[d]; }
  double& arrival(value_id v, device_index d) {
    return arrival_[static_cast<size_t>(v) * problem_.devices().size() + d];
  }
  /// Returns when device `d` can have a value.
  double ready_at(value_id v, device_index d);
  /// Returns the seconds in which a node's model outputs reach the host.
  double download_seconds(const node& call, device_index d);

  placement_problem& problem_;
  placed_nodes placed_;
  std::vector<double> finish_;  // by node
  std::vector<double> arrival_; // by value and device; negative: not moved there
  std::vector<timeline> timelines_;
  std::vector<device_index> candidates_; // scratch
};

} // namespace troupe
