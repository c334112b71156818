// The actor of a session's queue: a shell around the stream machine (src/strategy). It cuts and joins the requests'
// tensors as the machine says, sends pieces to the coordinators of the replicas, gathers what comes back and answers
// the callers.
#pragma once

#include "actors/entry.hpp"
#include "actors/replica.hpp"
#include "strategy/model_rows.hpp"
#include "strategy/stream_machine.hpp"

namespace troupe::actors {

/// What a stream is made of.
struct stream_parts {
  strategy how = strategy::none;
  stream_options options;
  std::shared_ptr<const strategy_library> plugin; // of `strategy::plug_in`
  std::vector<replica> replicas;
  std::shared_ptr<const model_rows> rows;
  tensor_maker
      make; // large tensors that are used again: outputs of requests that are cut, inputs of those that are joined
};

class stream_state {
public:
  static constexpr const char* name = "troupe.stream";
  using pointer = stream_ref::stateful_pointer<stream_state>;

  stream_ref::behavior_type behavior(pointer self, stream_parts parts);

private:
  friend class entry<stream_state>;

  struct open_request {
    pending_run_ptr caller;
    int64_t rows = 1;
    std::vector<piece_id> in_flight;
    run_result result = {}; // as far as it is there
  };
  struct flying_piece {
    size_t replica = 0;
    std::vector<piece_part> parts;
    uint64_t ticket = 0; // of its run
  };

  /// Calls `event(machine, now)` and does what the machine asks for; ends a closed stream that is idle.
  template <class Event>
  void tell(Event&& event);
  void carry_out(const start_piece& what);
  void carry_out(answer_request& what);
  void carry_out(const wake_at& what);

  void submit(const pending_run_ptr& caller);
  /// Answers who is asking when a handler throws: the caller of a request; all of them if the stream itself is broken.
  void failed(const submit_request& message, const failure& why) { end_one(message.pending->result, why); }
  void failed(const stream_query_message& message, const failure& why) { end_one(message.query->result, why); }
  template <class Message>
  void failed(const Message&, const failure& why) {
    end_broken(why);
  }
  template <class Answer>
  void end_one(Answer& caller, const failure& why) {
    caller.fail(why);
    if (telling_)
      end_broken(why);
  }
  void end_broken(const failure& why);
  stream_request describe(const run_request& request) const;
  /// Returns the run that a piece is.
  std::unique_ptr<pending_run> run_of(const start_piece& what);
  void take_result(const piece_ran& ended);
  /// Takes what a piece has computed for a part of it, whose rows begin at `first` in the piece.
  void gather(open_request& r, const flying_piece& piece, const piece_part& part, int64_t first,
              run_result& computed) const;
  /// Ends runs whose results no request wants any more.
  void stop_unwanted(request_id request, const std::vector<piece_id>& pieces);
  void notice_loss(size_t replica);
  void join(const device_handle& device);
  stream_stats count() const;
  run_time now() const;

  pointer self_ = nullptr;
  stream_parts parts_;
  std::unique_ptr<stream_machine> machine_;
  std::unordered_map<request_id, open_request> requests_;
  std::unordered_map<uint64_t, request_id> by_ticket_; // of `requests_`
  std::unordered_map<piece_id, flying_piece> pieces_;
  std::vector<replica_stats> counted_; // by replica: pieces, rows, time
  std::vector<run_time> busy_since_;   // by replica, if it has pieces
  std::vector<size_t> at_work_;        // by replica: pieces
  uint64_t answered_ = 0, failed_ = 0, late_ = 0;
  std::vector<stream_command> commands_; // being carried out
  bool closing_ = false;
  bool telling_ = false; // the machine: still set if it has thrown, and then it is in no state that anybody knows
};

/// The behaviour; spawn it with CAF on a thread of its own: it copies tensors.
stream_ref::behavior_type stream(stream_state::pointer self, stream_parts parts);

} // namespace troupe::actors
