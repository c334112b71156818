// A stream of requests over replicas as a state machine: what happens, and the time, go in; commands come out
// (strategy/stream.hpp). No actors, no threads, no clock, no tensors: a shell around it has these, a test has none.
//
// `request_queue` says what should start next, `dispatcher` on which replica, and `piece_planner` makes pieces of it.
// The machine starts the pieces, gathers their parts and answers. Each request that was accepted is answered exactly
// once, unless the machine is dropped before.
//
// - Cutting: a divisible request with more rows than `max_batch` becomes pieces: a share for each replica, or
//   micro-batches. Joining: others, of equal keys, become one piece of at most `max_batch` rows; they are not cut.
// - Priority: of what waits, the higher one starts first; what a lost piece held goes before all else. So a request
//   waits for what is in flight, its peers before it, and one piece of a replica's `fair_turn`. Ageing: each
//   `fair_turn`-th piece of a replica begins with what has waited longest. So a request of any priority starts at the
//   latest after `fair_turn` · (n + 1) + replicas · (`fair_turn` − 1) pieces, if n pieces are made of older ones.
// - Deadline: a request that is late is answered at once, with `errc::timeout`, wherever it is; what waits of it never
//   starts. A request that should start now, but would end after its deadline, is answered at once too, if others wait:
//   they have more use of the replica. If no other request waits it starts: the prediction may be wrong, and no request
//   is hurt.
// - Failure: a piece that fails ends its requests with its error. But one request may have been the reason: after
//   errors that may come from inputs, several that were joined run again, each alone, once. A request that ran whole
//   although shares were possible, and lacked memory, is cut, as all of its size are from then on.
// - Loss: what a lost replica held goes to the others; requests that are pinned to it, or all if none is left, fail
//   with `errc::device_lost`. A replica that loses three pieces in a row counts as lost.
// - A strategy plug-in that fails or answers what cannot be ends all open requests with its error.
//
// Each event costs O(log n) for each request that it concerns, and O(replicas · depth) for each piece that it starts.
// Not thread-safe.
#pragma once

#include "strategy/piece_planner.hpp"

#include <deque>

namespace troupe {

class stream_machine {
public:
  /// Throws `errc::invalid_argument` if the options make no sense, naming the option.
  explicit stream_machine(const machine_options& options);
  stream_machine(const stream_machine&) = delete;
  stream_machine& operator=(const stream_machine&) = delete;

  // -- what happens; the time never goes back: an earlier `now` counts as the last one

  /// Returns the new request's number; nullopt if the queue is full. Throws `errc::invalid_argument` if it has no rows
  /// or is pinned to a replica that never was.
  std::optional<request_id> submit(const stream_request& request, run_time now);
  /// Ignored for a piece that was lost with its replica.
  void piece_ended(piece_id piece, const piece_outcome& outcome, run_time now);
  /// Ends a request with `errc::cancelled`; nothing if it was answered.
  void cancel(request_id request, run_time now);
  /// Takes a replica out; nothing if it is out. `why` is for errors.
  void replica_lost(size_t replica, const std::string& why, run_time now);
  /// Adds a replica, after the last one or in the place of a lost one. Throws `errc::invalid_argument` if it is
  /// neither.
  void replica_joined(size_t replica, const replica_figures& figures, run_time now);
  void tick(run_time now);
  /// Ends all requests with `errc::cancelled`.
  void close(run_time now);

  /// Swaps `into` with the commands since the last call; its old content is dropped. To be called after each event.
  void take_commands(std::vector<stream_command>& into);

  // -- what a shell asks

  /// Returns whether `submit` would accept a request now.
  bool has_room() const { return waiting() + held_ < options_.queue_limit; }
  /// Returns how many requests have rows that wait for a replica.
  size_t waiting() const { return queue_.requests(); }
  /// Returns how many requests have no answer yet, apart from answers that are held back for their order.
  size_t open() const { return open_.size(); }
  size_t pieces_in_flight() const { return pieces_.size(); }
  const replica_roster& replicas() const { return dispatcher_.replicas(); }
  /// Returns how many records the machine holds: a measure of its memory.
  size_t records() const;

private:
  struct open_request {
    stream_request what;
    run_time submitted;
    int64_t rows_left = 0; // that are not done
    bool alone = false;    // a piece that it was joined in failed
    std::vector<gathered_part> done;
  };
  struct flying {
    size_t replica = 0;
    std::vector<piece_part> parts;
    bool could_be_shares = false;
  };

  void pass_time(run_time now);
  /// Starts what can start, and asks to be woken: the end of each event.
  void go_on();

  // -- parts
  /// Ends those of a piece that would be late, if others wait; returns whether there were any.
  bool shed(const planned_piece& piece);
  /// Starts a piece, unless some of it would be late.
  void start(const planned_piece& piece);
  /// Lets rows of a request wait.
  void enqueue(request_id id, const open_request& request, int64_t first, int64_t rows, bool came_back);
  void give_back(const flying& piece, size_t lost_replica);
  void piece_failed(const flying& piece, const failure& why);
  void lose(size_t replica, const std::string& why);

  // -- answers
  void answer(request_id id, failure why);
  void answer_all(const failure& why);
  void end_late();

  const machine_options options_;
  run_time now_;
  request_queue queue_;
  dispatcher dispatcher_;
  piece_planner planner_;
  std::unordered_map<request_id, open_request> open_;
  std::set<std::pair<run_time, request_id>> deadlines_;
  std::unordered_map<piece_id, flying> pieces_;
  request_id requests_ = 0;       // accepted so far
  piece_id started_ = 0;          // pieces so far
  std::optional<run_time> armed_; // the shell will wake the machine then
  // If answers are in order: those of the requests from `first_unsaid_` on, empty where there is none yet.
  std::deque<std::optional<answer_request>> unsaid_;
  request_id first_unsaid_ = 0;
  size_t held_ = 0; // answers among them
  std::vector<stream_command> commands_;
};

} // namespace troupe
