// Tasks given to devices one after the other, with the times that follow: what list-scheduling policies have in common.
//
// Moves between devices, and the answers that callers wait for, count. A device that idles while it waits may be given
// a short task meanwhile (insertion), among the newest of its pauses.
#pragma once

#include "plan/place/scheduling_problem.hpp"

#include <deque>

namespace troupe {

/// When a device is busy.
class device_timeline {
public:
  /// Returns the earliest start of a piece of work that is ready at `ready`.
  double earliest(double ready, double duration) const;
  void occupy(double start, double duration);
  /// Returns when all that it was given ends.
  double end() const { return end_; }

private:
  struct pause {
    double begin, end;
  };
  void remember(pause p);

  std::deque<pause> pauses_;
  double end_ = 0;
};

/// See the top of this file.
class earliest_finish {
public:
  explicit earliest_finish(const scheduling_problem& problem);

  /// When a task would run on a device.
  struct slot {
    double start = 0;
    double finish = 0; // with its answers' way to the caller
  };
  /// Returns it for a task whose operands are placed.
  slot slot_on(task_id n, uint32_t d) const;

  /// Places a task, after those that make its operands, where it would finish first. Throws `errc::unsupported` if no
  /// device can run it.
  void place(task_id n) {
    const auto [best, at] = first_finish(n);
    put(n, best, at);
  }
  /// Places a task where `figure(device, finish)` is least; of equal devices, the first one.
  template <class Figure>
  void place_by(task_id n, Figure&& figure) {
    const auto [best, at] = least_by(n, figure);
    put(n, best, at);
  }
  /// Returns where a task would finish first, and when.
  std::pair<uint32_t, slot> first_finish(task_id n) {
    return least_by(n, [](uint32_t, double finish) { return finish; });
  }
  /// Places a task on a device that may run it.
  void place_on(task_id n, uint32_t d) { put(n, d, slot_on(n, d)); }
  /// Places it there not before `start`, after all that the device has.
  void append(task_id n, uint32_t d, double start);

  /// What the placing of a task is about to change.
  struct placing {
    task_id task;
    uint32_t device;
    device_timeline timeline;
    double makespan;
    std::vector<std::vector<double>> arrivals; // of what the task reads
  };
  /// Returns it for a task that is placed next, so that it can be a trial.
  placing before(task_id n, uint32_t d) const;
  /// Takes a placing back: the newest one first.
  void take_back(placing&& was);

  /// Returns when device `d` has all that a task reads, and when it has done all that it was given.
  double ready_at(task_id n, uint32_t d) const;
  /// Returns the seconds in which what a task reads and device `d` has not moves there, one value after the other.
  double lacking_seconds(task_id n, uint32_t d) const;
  double end_of(uint32_t d) const { return timelines_[d].end(); }
  /// Returns when a placed task ends.
  double finish_of(task_id n) const { return finish_[n]; }
  bool is_placed(task_id n) const { return placed_[n] != policy_none; }
  /// Returns when the last task has ended, answers included.
  double makespan() const { return makespan_; }

  /// Moves the schedule out, after all tasks have been placed.
  void take(schedule& into) {
    into.device = std::move(placed_);
    into.start = std::move(start_);
  }

private:
  template <class Figure>
  std::pair<uint32_t, slot> least_by(task_id n, Figure&& figure) {
    problem_.candidates(n, candidates_);
    std::pair<uint32_t, slot> best{policy_none, {}};
    double least = 0;
    for (uint32_t d : candidates_) {
      const slot here = slot_on(n, d);
      const double is = figure(d, here.finish);
      if (best.first != policy_none && is >= least)
        continue;
      best = {d, here};
      least = is;
    }
    return best;
  }

  /// Returns when device `d` can have a value.
  double arrival(uint32_t v, uint32_t d) const;
  /// Returns the seconds in which a task's answers reach the caller.
  double answer_seconds(task_id n, uint32_t d) const;
  void put(task_id n, uint32_t d, const slot& at);
  void count_reads(task_id n, uint32_t d);

  const scheduling_problem& problem_;
  std::vector<uint32_t> placed_;
  std::vector<double> start_, finish_; // by task; answers aside
  // By value, by device: when it came there, negative if it did not. Empty before the first move, and after the last
  // reader.
  std::vector<std::vector<double>> arrival_;
  std::vector<uint32_t> reads_left_; // by value
  std::vector<device_timeline> timelines_;
  std::vector<uint32_t> candidates_; // scratch
  double makespan_ = 0;
};

} // namespace troupe
