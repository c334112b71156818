// The replicas of a stream: which of them live, what each has in flight, how fast it should be and how fast it has
// been. All functions are O(replicas · depth).
#pragma once

#include "strategy/replica_speed.hpp"

#include <algorithm>

namespace troupe {

/// See the top of this file.
class replica_roster {
public:
  struct flying_piece {
    piece_id piece;
    int64_t rows;
    run_time started;
    bool is_first; // the replica has not run this number of rows before
  };
  struct replica {
    explicit replica(const replica_figures& figures) : predicted(figures), speed(figures) {}

    replica_speed predicted, speed; // stays, and is measured
    bool living = true;
    std::string lost_because = {};       // empty if it was never said
    std::vector<flying_piece> in_flight; // oldest first
    run_time last_end;
    double owed = 0;          // rows, over the living ones 0; of static distributions
    size_t turns = 0;         // pieces since the last that began with what had waited longest
    size_t lost_last = 0;     // pieces in a row
    size_t prepared_last = 0; // pieces in a row that prepared something
    replica_absence absence;
    std::vector<int64_t> sizes; // rows of pieces that it has run: the last ones, each once
    double gain = 1;            // its rows a second, over those of the faster replicas together

    /// Returns whether a piece in flight is of a new size: how long it takes is hardly known.
    bool prepares() const { return std::ranges::any_of(in_flight, &flying_piece::is_first); }
    /// Returns whether it adds so little to the faster ones that it is not worth its new sizes and its slow pieces.
    bool rests() const { return gain < gain_that_counts; }
    bool is_new_size(int64_t rows) const { return std::ranges::find(sizes, rows) == sizes.end(); }
    /// Returns the seconds that a piece takes, what a new number of rows costs included.
    double seconds_with_size(int64_t rows) const;
    /// Returns by how much a piece on the other replicas must seem to end later before this one, which rests, takes it:
    /// a multiple of its own time, since it was perhaps never measured, and others only seem to hang.
    double seconds_to_take_over(int64_t rows) const { return 4 * seconds_with_size(rows); }
  };
  static constexpr double gain_that_counts = 0.05;

  explicit replica_roster(const machine_options& options);

  size_t size() const { return replicas_.size(); }
  bool is_living(size_t replica) const { return replica < replicas_.size() && replicas_[replica].living; }
  bool any_living() const;
  bool has_place(size_t replica) const { return is_living(replica) && replicas_[replica].in_flight.size() < depth_; }
  std::vector<replica>& all() { return replicas_; }
  const std::vector<replica>& all() const { return replicas_; }
  replica& operator[](size_t index) { return replicas_[index]; }
  const replica& operator[](size_t index) const { return replicas_[index]; }
  const replica_speed& speed(size_t replica) const { return replicas_[replica].speed; }

  /// Adds a replica, or replaces one that was lost. `replica` is at most `size()`.
  void join(size_t replica, const replica_figures& figures);
  /// Takes a replica out; returns its pieces in flight, in their order.
  std::vector<piece_id> lose(size_t replica, const std::string& why);
  /// Returns what ends requests that only a lost replica may run, or all if none is left.
  failure device_lost(size_t replica) const;

  void start(size_t replica, piece_id piece, int64_t rows, run_time now);
  enum class ending : uint8_t { done, unusual, failed, lost };
  void end(size_t replica, piece_id piece, ending how, run_time now);
  /// Returns whether the replica has lost as many pieces one after the other as make it count as lost.
  bool only_loses(size_t replica) const;
  /// Returns whether the replica's next piece should begin with what has waited longest.
  bool is_fair_turn(size_t replica) const { return replicas_[replica].turns + 1 >= fair_turn_; }

  /// Finds the `gain` of each replica for pieces of `rows` rows.
  void compare_speeds(int64_t rows);
  /// Returns whether replicas that rest may take over from others that are late: not while these prepare something.
  bool may_take_over() const;
  /// Returns why a replica rests; empty if it does not.
  std::string why_rests(size_t replica) const;
  /// Returns the seconds until a replica has done what it has in flight.
  double load(const replica& r, run_time now) const;
  /// Returns the seconds that a piece may take to its end if the replica were given it now.
  double may_take(size_t replica, int64_t rows, run_time now) const;
  /// Returns the seconds that the fastest living replica takes for a piece; 0 if there is none.
  double least_seconds(int64_t rows) const;

private:
  const size_t depth_, fair_turn_;
  std::vector<replica> replicas_;
};

} // namespace troupe
