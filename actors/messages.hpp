// The protocol: every message between actors, who sends it to whom, when, and who answers.
//
//   engine ──run──▶ coordinator ──install_plan, run_chunks──▶ device_actor
//                   coordinator ◀──plan_installed, chunk_begun, chunk_ended── device_actor
//                   coordinator ──fetch_tensor──▶ device_actor ──tensor_fetched──▶ coordinator
//   engine ──submit_request──▶ stream ──run──▶ coordinator of each replica; piece_ran comes back
//                   coordinator ──plan_wanted──▶ planner ──planned──▶ coordinator
//
// CAF itself tells how a device actor has ended (down_msg). Orders and their answers are those of the session machine
// (run/commands.hpp). Messages from one actor to another arrive in the order in which they were sent: a chunk may
// follow the install of its plan without waiting for the answer. Errors are values (`failure`); what a handler throws
// ends at the actor's entry (entry.hpp). Messages stay inside the process and are not serialised: src/remote has the
// messages to other hosts. They hold only ids, plain data, references to values and shared immutable plans, except for
// what answers a caller (`run`, `plan_query`: the caller's promise; `plan_wanted`).
#pragma once

#include "actors/pending.hpp"
#include "run/commands.hpp"

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/send.hpp>
#include <caf/typed_actor.hpp>

#include <concepts>

namespace troupe::actors {

struct device_handle;

// -- coordinator, host → device_actor

/// Sent by the host once, first, after the spawn: opens the device. Answered with `device_opened`.
struct open_device {};
struct device_opened {
  device_info info;
  failure why; // set if the device could not be opened
};

// The orders of `run/commands.hpp`: `install_plan`, `run_chunks`, `stop_execution`, `end_execution`, `retire_plan`,
// `fetch_tensor`, answered to the sender; `fetch_tensor` also by the host, for `engine::fetch`.

/// Sent by the host for `engine::put`. Answered with `tensor_put` to the sender, unless the device dies before.
struct put_tensor {
  tensor value;
};
struct tensor_put {
  device_tensor value;
  failure why; // set if it failed
};

/// Sent by the host for `engine::stats`. Answered with `device_stats`.
struct query_stats {};

// -- engine → coordinator

/// Sent by the engine to every living session if a device joins, to all in the same order. Not answered.
struct device_joined {
  std::shared_ptr<const device_handle> device;
};

/// Sent by the engine to every living session if a device leaves in order. Not answered: who needs it holds `need`
/// meanwhile.
struct device_leaves {
  caf::actor_addr device;
  std::string why;
  std::shared_ptr<const void> need;
};

/// Sent by the engine for each run. Answered through its promise, once, when all outputs are there or the run has
/// failed.
struct run {
  explicit run(std::unique_ptr<pending_run> asked) : pending(std::move(asked)) {}
  pending_run_ptr pending;
};

/// Sent by the engine when the caller's stop token asks for it. Not answered; the run ends with errc::cancelled.
struct cancel_run {
  uint64_t ticket = 0; // run_request::ticket
};

/// Sent by the engine for `session::plan`. Answered through the query.
struct plan_query_message {
  explicit plan_query_message(std::unique_ptr<plan_query> asked) : query(std::move(asked)) {}
  plan_query_ptr query;
};

/// Sent by the engine for `session::stats`. Answered through the query.
struct session_query_message {
  explicit session_query_message(std::unique_ptr<stats_query> asked) : query(std::move(asked)) {}
  stats_query_ptr query;
};

/// A chunk of another host's session: instead of an answer `done` is called once, from any thread, unless the device
/// dies before.
struct run_lent {
  chunk_work work;
  chunk_done done;
};

/// Sent by the engine when the last handle of a session is gone: no more runs will come. The coordinator ends when no
/// run is in flight. Not answered.
struct close_session {};

/// Sent by a device's ledger (`shared_ledger`), from another session's thread. Not answered.
struct memory_changed {};

/// Sent by a session's door for each request. Answered through its promise, once.
struct submit_request {
  explicit submit_request(std::unique_ptr<pending_run> asked) : pending(std::move(asked)) {}
  pending_run_ptr pending;
};

/// Sent to a stream when the run of one of its pieces has ended, from the replica's thread. Not answered.
struct piece_ran {
  uint64_t piece = 0;
  std::shared_ptr<run_result> result; // counts if there is no failure
  failure why;
};

/// Sent by the engine for `session::queue_stats`. Answered through the query.
struct stream_query_message {
  explicit stream_query_message(std::unique_ptr<stream_query> asked) : query(std::move(asked)) {}
  stream_query_ptr query;
};

/// Sent by the coordinator, or a stream, to itself: looks for deadlines that have passed and devices that have fallen
/// silent.
struct tick {};

// -- interfaces

using device_ref =
    caf::typed_actor<caf::replies_to<open_device>::with<device_opened>, caf::reacts_to<install_plan>,
                     caf::reacts_to<run_chunks>, caf::reacts_to<run_lent>, caf::reacts_to<stop_execution>,
                     caf::reacts_to<end_execution>, caf::reacts_to<retire_plan>, caf::reacts_to<fetch_tensor>,
                     caf::reacts_to<put_tensor>, caf::replies_to<query_stats>::with<device_stats>>;

/// What a device actor answers `put_tensor` to.
using put_sink = caf::typed_actor<caf::reacts_to<tensor_put>>;

/// What a device actor sends its answers to coordinators.
using completion_sink =
    caf::typed_actor<caf::reacts_to<plan_installed>, caf::reacts_to<chunk_ended>, caf::reacts_to<tensor_fetched>>;
/// What it tells those who look ahead.
using begin_sink = caf::typed_actor<caf::reacts_to<chunk_begun>>;

/// Makes what the session's plans lack, so that the coordinator hears everything meanwhile. Answers the sender, who has
/// `plan_sink`.
using planner_ref = caf::typed_actor<caf::reacts_to<plan_wanted>>;
using plan_sink = caf::typed_actor<caf::reacts_to<planned>>;

/// A session's queue of requests.
using stream_ref = caf::typed_actor<caf::reacts_to<submit_request>, caf::reacts_to<cancel_run>,
                                    caf::reacts_to<piece_ran>, caf::reacts_to<stream_query_message>,
                                    caf::reacts_to<device_joined>, caf::reacts_to<close_session>, caf::reacts_to<tick>>;

using coordinator_ref =
    completion_sink::extend<caf::reacts_to<chunk_begun>, caf::reacts_to<planned>, caf::reacts_to<run>,
                            caf::reacts_to<cancel_run>, caf::reacts_to<plan_query_message>,
                            caf::reacts_to<session_query_message>, caf::reacts_to<device_joined>,
                            caf::reacts_to<device_leaves>, caf::reacts_to<close_session>, caf::reacts_to<tick>,
                            caf::reacts_to<memory_changed>, caf::reacts_to<continue_control>>;

/// Sends a caller's question, or run, as a message of type `M`. Returns the future of its answer.
template <class M, class Receiver, class Asked>
auto ask(const Receiver& to, std::unique_ptr<Asked> asked) {
  auto answer = asked->result.future();
  caf::anon_send(to, M(std::move(asked)));
  return answer;
}

template <class T, class... Types>
concept one_of = (std::same_as<T, Types> || ...);

/// What actors send each other.
template <class T>
concept is_message =
    one_of<T, open_device, device_opened, install_plan, run_chunks, run_lent, stop_execution, end_execution,
           retire_plan, fetch_tensor, put_tensor, tensor_put, tensor_fetched, query_stats, plan_installed, chunk_begun,
           chunk_ended, plan_wanted, planned, device_joined, device_leaves, run, cancel_run, plan_query_message,
           session_query_message, submit_request, piece_ran, stream_query_message, close_session, tick, memory_changed,
           continue_control, device_stats>;

} // namespace troupe::actors

/// Messages are not serialised.
template <troupe::actors::is_message T>
struct caf::allowed_unsafe_message_type<T> : std::true_type {};
