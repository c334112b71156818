// What of a stream's waiting rows becomes a piece next, and on which replica.
#pragma once

#include "strategy/dispatcher.hpp"

#include <functional>

namespace troupe {

/// A piece that should start: of each of `rows_of` all rows, or of its only one the first `rows`.
struct planned_piece {
  size_t replica = 0;
  std::vector<const waiting_rows*> rows_of;
  int64_t rows = 0;
  bool could_be_shares = false; // a request that runs whole because all replicas are at work
};

/// See the top of this file.
class piece_planner {
public:
  /// Queue and dispatcher live longer. `start` takes the rows of a piece, or some of them, out of the queue.
  piece_planner(const machine_options& options, request_queue& queue, dispatcher& who,
                std::function<void(const planned_piece&)> start)
      : max_batch_(options.max_batch), micro_batch_(options.micro_batch), queue_(queue), dispatcher_(who),
        start_(std::move(start)) {}

  /// Has all pieces started that can start now. Throws what a strategy plug-in does wrong. Returns when to look again,
  /// if rows wait for a replica that may be slower than thought.
  std::optional<run_time> start_all(run_time now);

private:
  /// Starts what is next in the shared lane if a replica should take it now; else says when to look again.
  bool start_shared(const waiting_rows& head, run_time now, std::optional<run_time>& look_again);
  /// Returns whether rows become a share for each replica.
  bool is_shared_out(const waiting_rows& rows) const;
  /// Starts a piece on a replica, or makes shares; false if there is nothing for it.
  bool start_on(size_t replica, bool of_shared_too, run_time now);
  const waiting_rows* next_for(size_t replica, bool of_shared_too) const;
  void make_shares(const waiting_rows& of, run_time now);
  /// Returns what should be one piece that begins with `first`.
  planned_piece plan_piece(size_t replica, const waiting_rows& first) const;

  const int64_t max_batch_, micro_batch_;
  request_queue& queue_;
  dispatcher& dispatcher_;
  const std::function<void(const planned_piece&)> start_;
};

} // namespace troupe
