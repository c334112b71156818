// Replicas in virtual time around a stream machine: each runs its pieces one after the other, as fast as a test says.
// Each command of the machine is checked at once against a naive account of rows.
#pragma once

#include "strategy/stream_machine.hpp"

#include <cmath>
#include <deque>
#include <functional>
#include <limits>
#include <map>

namespace troupe::test {

inline run_time at(double seconds) {
  return run_time(std::chrono::nanoseconds(std::llround(seconds * 1e9)));
}
inline double in_seconds(run_time t) {
  return std::chrono::duration<double>(t.time_since_epoch()).count();
}

/// Returns a request that may be cut and joined.
inline stream_request rows_of_key(int64_t rows, uint64_t key = 0) {
  return {.rows = rows, .key = std::to_string(key), .divisible = true, .deadline = {}, .pinned = {}};
}
/// Returns one that is a piece of its own.
inline stream_request one_piece(int64_t rows = 1) {
  return {.rows = rows, .deadline = {}, .pinned = {}};
}

class stream_world {
public:
  /// `truth`: how fast the replicas are; the options say how fast they should be.
  stream_world(const machine_options& options, std::vector<replica_figures> truth);
  /// The replicas are as fast as predicted.
  explicit stream_world(const machine_options& options) : stream_world(options, options.replicas) {}

  struct started_piece {
    start_piece what;
    double time = 0;
    int64_t rows = 0;
  };
  struct told {
    answer_request what;
    double time = 0;
  };

  /// Returns nullopt if the queue is full.
  std::optional<request_id> submit(const stream_request& request);
  void cancel(request_id request);
  void lose(size_t replica);
  void join(size_t replica, const replica_figures& predicted, const replica_figures& truth);
  /// Lets time pass, and everything happen that happens until then.
  void run_until(double seconds);
  /// Lets the next thing happen if it happens until then; returns whether it did.
  bool step(double until = std::numeric_limits<double>::infinity());
  /// Lets everything happen that is left.
  void run();
  /// Ends the first piece of a replica now, whatever it would take.
  void end_first(size_t replica, const piece_outcome& outcome);

  const stream_machine& machine() const { return machine_; }
  double now() const { return now_; }
  /// Pieces that were started, and answers, in this order; kept if `keeps_history`.
  const std::vector<started_piece>& started() const { return started_; }
  const std::vector<told>& answers() const { return answers_; }
  /// Returns when the last answer came.
  double last_answer() const { return answers_.empty() ? 0 : answers_.back().time; }
  /// Returns the answer to a request; fails the test if there is none.
  const told& answer_to(request_id request) const;
  /// Returns the rows of a request by replica, of the pieces started so far.
  std::vector<int64_t> rows_by_replica(request_id request) const;
  size_t in_flight(size_t replica) const { return replicas_.at(replica).pieces.size(); }
  bool is_lost(size_t replica) const { return replicas_.at(replica).lost; }
  size_t unanswered() const { return open_.size(); }

  std::vector<replica_figures> truth; // may change at any time, for pieces that begin after that
  bool keeps_history = true;
  /// The outcome of a piece; by default, done.
  std::function<piece_outcome(const start_piece&)> outcome_of = [](const start_piece&) { return piece_outcome{}; };
  /// The factor by which a piece takes longer than `truth` says.
  std::function<double()> jitter = [] { return 1.0; };
  /// Seconds that a piece takes beyond that.
  std::function<double(const started_piece&)> extra = [](const started_piece&) { return 0.0; };

private:
  struct running {
    start_piece what;
    int64_t rows = 0;
    double ends = -1; // once it has begun
  };
  struct replica_state {
    std::deque<running> pieces;
    bool lost = false;
  };
  /// The naive account of a request: the state of each row.
  enum class row_state : uint8_t { waits, in_flight, done };
  struct account {
    stream_request what;
    run_time submitted;
    std::vector<row_state> rows;
    std::map<piece_id, std::vector<std::pair<int64_t, int64_t>>> done_by;
    bool alone = false; // must not be joined any more
  };

  /// Carries out the machine's commands.
  void obey();
  void on(const start_piece& command);
  void on(const answer_request& command);
  void begin_next(size_t replica);
  void settle(const running& piece, const piece_outcome& outcome);
  void mark(const piece_part& part, row_state from, row_state to);
  size_t waiting() const;

  const machine_options options_;
  stream_machine machine_;
  double now_ = 0;
  std::vector<replica_state> replicas_;
  std::map<request_id, account> open_;
  std::optional<double> wake_;
  std::vector<started_piece> started_;
  std::vector<told> answers_;
  std::map<request_id, size_t> answer_at_;
  request_id accepted_ = 0, answered_ = 0;
  std::vector<stream_command> commands_;
};

} // namespace troupe::test
