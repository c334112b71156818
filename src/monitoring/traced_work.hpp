// The work of a traced run by device, and where else it could be done: what the rules for bottlenecks share.
#pragma once

#include "monitoring/replay.hpp"

namespace troupe::monitoring {

/// See the top of this file. Refers to the trace.
class traced_work {
public:
  traced_work(const run_trace& trace, std::span<const shape> dims);

  const plan& source() const { return plan_; }
  const run_trace& trace() const { return trace_; }
  const replayed_run& run() const { return run_; }
  double total_s() const { return total_s_; }
  std::span<const shape> dims() const { return dims_; }

  /// Returns the devices that computed something, those of control flow aside; of devices that share a processor the
  /// first.
  const std::vector<device_index>& used() const { return used_; }
  /// Returns the device of `used` that counts this one's work.
  device_index lead_of(device_index d) const { return static_cast<device_index>(processor_[d]); }
  const std::string& name(device_index d) const { return plan_.devices[d].name; }
  bool is_real(device_index d) const { return plan_.devices[d].kind != device_kind::control; }

  /// Returns the seconds of nodes on a device of `used`; and of copies and pauses too.
  double work_s(device_index d) const { return work_s_[d]; }
  double busy_s(device_index d) const { return busy_s_[d]; }
  /// Returns the seconds in which at least one device was busy.
  double any_busy_s() const;

  /// Returns the predicted seconds of one node, on any device; 0 of control flow.
  double predicted_s(node_id n, device_index d) const;
  /// Returns the predicted seconds of all nodes, one after the other.
  double predicted_s(device_index d) const;
  /// Returns how much longer a chunk's nodes are predicted to take on another device.
  double ratio(chunk_id c, device_index to) const;
  /// Returns whether a device can run these nodes, and has the memory for the whole model.
  bool can_run(device_index d, std::span<const node_id> nodes) const;

  /// Returns the part of the time that is saved if the run takes `seconds`.
  double gain(double seconds) const { return total_s_ > 0 ? 1 - seconds / total_s_ : 0; }
  /// Returns the part of the time that is saved if the chunks for which `which` holds run on `to`, where values need
  /// not go to and fro.
  double gain_on(device_index to, const std::function<bool(const replayed_chunk&)>& which) const;
  /// Returns the best device for the whole run and what it saves; nullopt if none can run it.
  std::optional<std::pair<device_index, double>> best_single() const;

private:
  const run_trace& trace_;
  const plan& plan_;
  const replayed_run run_;
  const double total_s_;
  std::vector<shape> dims_;
  std::vector<size_t> processor_; // by device
  std::vector<double> work_s_, busy_s_;
  std::vector<device_index> used_;
};

} // namespace troupe::monitoring
