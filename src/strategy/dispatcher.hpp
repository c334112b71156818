// Which replica takes which rows.
//
// `round_robin` and `weighted` keep what they owe each replica, so that shares are right over many requests, even of
// one row each.
//
// `adaptive` and `stealing` decide late: rows go to a replica with a free place, namely the one that would end them
// first. Unless one without a free place would end them sooner, and all that waits would be done sooner, too: then they
// wait for it. So a slow replica helps while much is waiting, and does not hold up the end.
//
// `plug_in` asks a `strategy_host`; its wrong answers are thrown by `share` and `choose`.
//
// A replica that would add less than a twentieth to what the faster ones do rests: it costs more in new sizes and slow
// pieces than it brings. It takes rows only if the others would end them much later than it would: those are lost, or
// hang after they have prepared all that they run. A replica that gets nothing is not measured either, so those two try
// it again now and then (`replica_absence`).
//
// All functions are O(replicas · depth), what a plug-in does aside.
#pragma once

#include "strategy/replica_roster.hpp"
#include "strategy/request_queue.hpp"
#include "strategy/steady_shares.hpp"
#include "strategy/strategy_host.hpp"

#include <algorithm>
#include <limits>

namespace troupe {

class dispatcher {
public:
  /// `queue`, which lives longer, has the rows that wait.
  dispatcher(const machine_options& options, const request_queue& queue);

  replica_roster& replicas() { return replicas_; }
  const replica_roster& replicas() const { return replicas_; }
  /// See `replica_roster`. What replicas are owed is forgotten.
  void join(size_t replica, const replica_figures& figures);
  std::vector<piece_id> lose(size_t replica, const std::string& why);

  /// Returns whether a request is cut into one share for each replica.
  bool cuts_into_shares() const;
  /// Returns how many of `rows` each replica should get. `adaptive` shares are `steady_shares`. Static ones of many
  /// rows are the same each time; of few rows, what is rounded off is remembered.
  std::vector<int64_t> share(int64_t rows, run_time now);

  struct choice {
    std::optional<size_t> replica;      // that should take the rows now
    std::optional<run_time> look_again; // if they wait for a replica that may be slower than thought
  };
  /// Returns the replica that should run a request as it is, because the `waiting` requests keep all replicas of
  /// `adaptive` shares at work: whole requests take less time than their shares do together, and
  /// nothing is gathered. Else nullopt.
  std::optional<size_t> takes_whole(int64_t rows, size_t waiting, run_time now);
  /// A replica had no memory for `rows` rows at once: requests with as many or more are cut from now on.
  void cut_from(int64_t rows) { too_many_rows_ = std::min(too_many_rows_, rows); }
  /// Returns a replica that has nothing to do, so that a request is cut into shares: one that rests only if each of
  /// the others would end the request much later.
  choice idle_for_shares(int64_t rows, run_time now) const;
  /// Returns who should take the shared lane's next rows; `rows` of them, unless they may be cut.
  choice choose(int64_t rows, bool may_be_cut, run_time now);
  /// A replica has taken rows of the shared lane that were not shares.
  void took(size_t replica, int64_t rows);
  /// Returns how many of the `offered` rows a replica should cut; `left`: rows of the request that are not yet taken.
  int64_t cut(size_t replica, int64_t offered, int64_t left) const;

private:
  using replica = replica_roster::replica;

  bool is_static() const { return how_ == distribution::round_robin || how_ == distribution::weighted; }
  /// Returns the share of each replica in a piece that only one of them gets, or 0 if it is out; they add up to 1.
  std::vector<double> weights(int64_t rows) const;
  size_t whose_turn(int64_t rows) const;
  /// Returns what a plug-in sees.
  strategy_host::view view(run_time now);
  choice choose_by_plugin(int64_t rows, bool may_be_cut, run_time now);
  choice choose_late(int64_t rows, bool may_be_cut, run_time now) const;
  /// Returns the rows a second of all living replicas together, in pieces of `rows`.
  double rows_per_second(int64_t rows) const;
  int64_t cut(const replica& r, int64_t offered, int64_t left, double all_speeds) const;
  /// Forgets what replicas are owed, and the shares that they had.
  void forget();
  std::vector<int64_t> static_shares(int64_t rows);
  std::vector<int64_t> adaptive_shares(int64_t rows, run_time now);

  const distribution how_;
  const size_t depth_;
  const int64_t micro_batch_, min_piece_;
  const request_queue& queue_;
  replica_roster replicas_;
  std::optional<size_t> next_;                                  // whose turn it is, of static distributions, once asked
  size_t last_ = SIZE_MAX;                                      // who had it before; of `round_robin`
  steady_shares shares_;                                        // of `adaptive`
  std::unique_ptr<strategy_host> host_;                         // of `plug_in`
  std::vector<strategy_replica> shown_;                         // to it
  int64_t chosen_rows_ = 0;                                     // by its last choice
  int64_t too_many_rows_ = std::numeric_limits<int64_t>::max(); // for one replica's memory
};

} // namespace troupe
