// Whether a session's plan is still the best one: how fast devices are beside what was predicted, when a plan for these
// speeds is wanted, whether that plan was better. Pure: what is measured and the time go in, advice comes out.
//
// A device's *pace* is what it takes over what it states, as a median over the runs of a window. A pace counts as
// changed when several windows in a row differ from the pace that was planned with, all the same way, by more than
// noise does. Then a plan for the new paces is wanted. It is taken if it should be better by a tenth and gains more
// than its weights take to move, and is on trial at first: if the session is not faster by it, it is taken back.
//
// No plan is taken, left and taken again within a minute. After one is taken back, nothing changes for a minute, twice
// as long the next time.
#pragma once

#include "base/hash.hpp"
#include "run/request.hpp"

#include <map>

namespace troupe {

class speed_watch {
public:
  /// What a device worked for one run.
  struct device_time {
    size_t device = 0;
    double stated_s = 0;   // predicted by what it states
    double measured_s = 0; // 0 of either: it says nothing
  };
  /// What a run tells when it has ended.
  struct ended_run {
    std::vector<device_time> devices; // of its plan
    double stated_s = 0;              // predicted for the run by what devices state; above 0
  };
  /// A plan for the paces that were asked for, beside the one that is used.
  struct candidate {
    hash128 used, other;            // tell what runs where by each
    double used_s = 0, other_s = 0; // from one answer to the next, predicted with these paces
    double used_stated_s = 0;       // of a run, predicted by what devices state …
    double other_stated_s = 0;      // … by each
    double move_s = 0;              // in which weights move
  };
  enum class advice : uint8_t {
    go_on,
    plan,      // make a plan for `paces`, then call `take` or `refuse`
    take_back, // use the plan again that was used before the last one that was taken
  };

  /// Takes how many runs are in flight from now on.
  void count(size_t runs, run_time now);
  /// Called when a run has ended. The time since the one before it counts as its own.
  advice ended(const ended_run& run, run_time now);
  /// Called when a run has ended whose times are not known: the time since the one before it does not count.
  void skip(run_time now);

  /// Returns the paces to plan with, by device, 1 for those that nothing is known of: as measured; of a device that the
  /// plan does not use, as measured within the last minute, then the best that it has had. One that was never measured
  /// is thought to be as far from what it states as the others were at their best.
  std::vector<double> paces(size_t devices, run_time now) const;
  /// Returns how many runs are in flight on average; at least 1.
  double in_flight() const;

  /// Returns whether the plan that was wanted is to be used from now on.
  bool take(const candidate& made, run_time now);
  /// Called when there is no such plan. `later`: it is wanted again soon.
  void refuse(bool later);

private:
  struct window {
    double busy_s = 0;      // in which runs were in flight
    double in_flight_s = 0; // the same, counted for each of them
    double stated_s = 0;    // of the runs that have ended
    size_t runs = 0;        // that have
  };
  struct device_pace {
    std::vector<double> samples; // of this window's runs
    std::vector<double> windows; // medians of the last ones, by the plan that is used; empty if it does not use it
    double last = 0, best = 0;   // 0: never measured
    run_time measured;
    double planned = 1; // what was planned with
  };
  struct trial {
    hash128 before;                  // tells the plan that was used before
    double least_s = 0;              // `seconds` if this plan is as fast as that one
    std::map<size_t, double> unused; // `device_pace::planned` of devices that that one did not use
    size_t windows = 0;              // so far
  };
  struct taken_plan {
    hash128 plan;
    run_time at;
  };

  void close_window(run_time now);
  advice look(run_time now);
  advice judge(run_time now);
  bool has_changed(const device_pace& d, run_time now) const;
  double believed(const device_pace& d, run_time now) const;
  /// Returns the seconds for each second that devices state for a run, by the last windows.
  double seconds() const;
  /// Returns when a plan was taken, if it was within the last minute.
  std::optional<run_time> taken_lately(const hash128& plan, run_time now);
  void begin_windows();

  std::map<size_t, device_pace> devices_;
  window window_, open_;           // this one; what comes since the last end
  std::vector<window> windows_;    // the last ones, by the plan that is used
  size_t runs_ = 0;                // in flight …
  run_time counted_;               // … since then
  std::map<size_t, double> asked_; // paces of the plan that is wanted; empty: none is
  std::optional<trial> trial_;
  std::vector<taken_plan> taken_; // the last ones
  run_time quiet_until_;          // nothing is wanted before
  std::chrono::seconds rest_{60}; // after the next plan that is taken back
};

} // namespace troupe
