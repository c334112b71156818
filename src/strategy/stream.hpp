// A stream of requests over replicas, as plain data: what goes into a `stream_machine`, and what comes out of it.
//
// A replica is a session of the model on devices of its own. A request is what a caller submits. A piece is what one
// replica runs at once: rows of one request, or of several that are joined.
#pragma once

#include "run/request.hpp"
#include "run/strategy_library.hpp"

#include <optional>
#include <variant>
#include <vector>

namespace troupe {

using request_id = uint64_t; // counts up in the order of submission
using piece_id = uint64_t;

/// What a machine needs to know of a request.
struct stream_request {
  int64_t rows = 1;
  /// Only requests of equal keys may be joined: same dims apart from rows, same inputs that all rows share, byte for
  /// byte.
  std::string key;
  /// Whether it may be cut and joined by rows (see strategy/row_proof.hpp).
  bool divisible = false;
  /// The most rows of a piece that is cut from it, beside `machine_options::micro_batch`; 0: no limit of its own.
  int64_t micro_batch = 0;
  /// Higher ones go first.
  int priority = 0;
  /// By when it must be answered; empty if there is no limit.
  std::optional<run_time> deadline;
  /// The only replica that may run it, and then only the one that is there now: its values may be there. Empty if any
  /// may.
  std::optional<size_t> pinned;
};

/// Rows of one request within a piece; those of a piece follow each other in the order of its parts.
struct piece_part {
  request_id request = 0;
  int64_t first_row = 0;
  int64_t rows = 0;
};

/// How fast a replica should be: a piece takes `fixed_seconds` and `row_seconds` for each row. Finite, not negative.
struct replica_figures {
  double row_seconds = 0;
  double fixed_seconds = 0;

  double seconds(double rows) const { return fixed_seconds + rows * row_seconds; }
};

/// Who gets what. `round_robin` and `weighted` are static: a piece waits for the replica whose turn it is, even if
/// others are idle.
enum class distribution : uint8_t {
  round_robin, // equal shares; pieces in turn
  weighted,    // shares and pieces in proportion to the predicted speed
  adaptive,    // shares so that all end together, by measured speed; pieces to who ends them first
  stealing,    // who is idle takes the next piece; towards the end of what waits, pieces become smaller
  plug_in      // what `machine_options::plugin` says
};

struct machine_options {
  std::vector<replica_figures> replicas;
  distribution how = distribution::stealing;
  std::shared_ptr<const strategy_library> plugin = {}; // of `plug_in`
  /// Pieces in flight on a replica. With 2, inputs of the next one are uploaded while this one computes. At least 1.
  size_t depth = 2;
  /// The most rows of a piece that is cut from a request. 0: the machine chooses; not for `stealing`: one share for
  /// each replica.
  int64_t micro_batch = 0;
  /// The fewest rows of a piece that `stealing` cuts, apart from a request's last. 0: an eighth of `micro_batch`.
  int64_t min_piece = 0;
  /// The most rows up to which requests are joined. 0: never. Requests with more rows are cut instead.
  int64_t max_batch = 0;
  /// How long a request waits for others to be joined with; not negative. It does not wait if its batch is full, nor
  /// beyond what its deadline allows.
  std::chrono::nanoseconds max_delay{0};
  /// The most requests that wait for a replica or, if answers are in order, for the answers before theirs. At least 1.
  size_t queue_limit = 1024;
  /// Whether answers, errors too, come in the order of submission; else each comes as soon as it is there.
  bool ordered = false;
  /// Each `fair_turn`-th piece of a replica begins with the request that has waited longest, whatever its priority. At
  /// least 1.
  size_t fair_turn = 8;
};

/// How a piece ended: done, unless it is lost or there is a reason why it failed.
struct piece_outcome {
  bool lost = false;    // nothing is known of it; others may run its rows
  bool is_usual = true; // its time counts; not that of a first run, which makes plans and kernels
  failure why;
};

// -- commands

/// Run these rows on that replica; answered with one `piece_ended`, unless the replica is lost.
struct start_piece {
  piece_id piece = 0;
  size_t replica = 0;
  std::vector<piece_part> parts;
};

/// Where the rows of a request were computed.
struct gathered_part {
  piece_id piece = 0;
  int64_t first_row = 0; // in the request
  int64_t rows = 0;
};

/// The one answer to a request: all its rows, in their order, unless it failed.
struct answer_request {
  request_id request = 0;
  std::vector<gathered_part> parts;
  failure why;
};

/// Call `tick` then, or any event later than that. Takes the place of a later time, not of an earlier one.
struct wake_at {
  run_time time;
};

using stream_command = std::variant<start_piece, answer_request, wake_at>;

} // namespace troupe
