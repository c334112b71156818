// A schedule that is made one decision after the other, for `troupe.experiments.Episode`.
#pragma once

#include "question.hpp"

#include <memory>

namespace troupe::python {

/// Tasks take their devices in the order of `question::order`; what the numbers are is said in
/// python/troupe/experiments/_episode.py. Not thread-safe.
class episode {
public:
  /// Figures of one device in an observation.
  static constexpr size_t features = 6;

  /// keep: finds all moves now, [edges, devices, devices], so that the episode goes on after its policy has returned.
  episode(std::shared_ptr<question> asked, bool keep);

  /// Takes all decisions back.
  void restart();
  bool done() const { return at_ == question_->order().size(); }
  /// The task that is to be decided. Throws `errc::invalid_argument` after the last.
  uint32_t task() const;
  /// Whether the task may run on a device; nowhere after the last.
  bool allowed(size_t device) const;
  /// Fills in [devices, features]; zeros after the last.
  void observe(std::span<float> seen) const;
  /// Gives the task a device; returns by how many seconds the makespan grows. Throws `errc::invalid_argument` for one
  /// on which it may not run, and after the last.
  double put(int64_t device);

  const std::vector<int64_t>& devices() const { return devices_; }
  const std::vector<uint32_t>& order() const { return question_->order(); }
  double makespan() const { return makespan_; }
  double scale() const { return scale_; }
  size_t device_count() const { return question_->devices(); }

private:
  double seconds(size_t device) const { return question_->times()[order()[at_] * device_count() + device]; }
  double moved(size_t edge, uint32_t from, uint32_t to) const;
  void find_ready();

  std::shared_ptr<question> question_;
  std::vector<double> moves_; // empty unless they are kept
  double scale_ = 1;

  size_t at_ = 0; // in the order
  double makespan_ = 0;
  std::vector<int64_t> devices_;     // by task; -1: not decided
  std::vector<double> end_;          // by task
  std::vector<double> free_, ready_; // by device: it has done all before; it has what the task reads
};

} // namespace troupe::python
