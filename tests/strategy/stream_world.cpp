#include "strategy/stream_world.hpp"

#include "support/catch.hpp"

#include <algorithm>

namespace troupe::test {

namespace {

/// As REQUIRE, and fast enough for millions of calls.
void must(bool holds, const char* what) {
  if (!holds)
    FAIL(what);
}

} // namespace

stream_world::stream_world(const machine_options& options, std::vector<replica_figures> how_fast)
    : truth(std::move(how_fast)), options_(options), machine_(options), replicas_(options.replicas.size()) {}

size_t stream_world::waiting() const {
  return static_cast<size_t>(std::count_if(open_.begin(), open_.end(), [](const auto& o) {
    return std::find(o.second.rows.begin(), o.second.rows.end(), row_state::waits) != o.second.rows.end();
  }));
}

std::optional<request_id> stream_world::submit(const stream_request& request) {
  machine_.tick(at(now_)); // so that requests that are late now are gone
  obey();
  const bool room = machine_.has_room();
  if (keeps_history && !options_.ordered)
    must(room == (waiting() < options_.queue_limit), "there is room exactly if fewer wait than may");
  const std::optional<request_id> id = machine_.submit(request, at(now_));
  must(id.has_value() == room, "a request is accepted if there is room");
  if (id) {
    must(*id == accepted_++, "numbers count up");
    open_.emplace(*id, account{.what = request,
                               .submitted = at(now_),
                               .rows = std::vector<row_state>(static_cast<size_t>(request.rows)),
                               .done_by = {}});
  }
  obey();
  return id;
}

void stream_world::cancel(request_id request) {
  const size_t before = answers_.size();
  const bool was_open = open_.count(request) > 0;
  machine_.cancel(request, at(now_));
  obey();
  if (was_open && keeps_history && !options_.ordered)
    must(answers_.size() > before, "what is cancelled is answered at once");
}

void stream_world::lose(size_t replica) {
  replica_state& r = replicas_[replica];
  std::deque<running> lost;
  lost.swap(r.pieces);
  r.lost = true;
  for (const running& p : lost)
    for (const piece_part& part : p.what.parts)
      mark(part, row_state::in_flight, row_state::waits);
  machine_.replica_lost(replica, "pulled out", at(now_));
  obey();
  for (const running& p : lost) { // reports that still come count for nothing
    machine_.piece_ended(p.what.piece, {}, at(now_));
    obey();
  }
}

void stream_world::join(size_t replica, const replica_figures& predicted, const replica_figures& real) {
  replicas_.resize(std::max(replicas_.size(), replica + 1));
  truth.resize(replicas_.size());
  truth[replica] = real;
  replicas_[replica] = {};
  machine_.replica_joined(replica, predicted, at(now_));
  obey();
}

bool stream_world::step(double until) {
  double next = std::numeric_limits<double>::infinity();
  size_t who = replicas_.size();
  for (size_t r = 0; r < replicas_.size(); ++r)
    if (!replicas_[r].pieces.empty() && replicas_[r].pieces.front().ends < next) {
      next = replicas_[r].pieces.front().ends;
      who = r;
    }
  const bool wakes = wake_ && *wake_ <= next;
  next = wakes ? *wake_ : next;
  if (next > until || std::isinf(next))
    return false;
  now_ = std::max(now_, next);
  if (wakes) {
    wake_.reset();
    machine_.tick(at(now_));
    obey();
  } else {
    end_first(who, outcome_of(replicas_[who].pieces.front().what));
  }
  return true;
}

void stream_world::run_until(double until) {
  while (step(until)) {
  }
  if (!std::isinf(until))
    now_ = std::max(now_, until);
}

void stream_world::run() {
  run_until(std::numeric_limits<double>::infinity());
}

void stream_world::end_first(size_t replica, const piece_outcome& outcome) {
  const running piece = replicas_[replica].pieces.front();
  replicas_[replica].pieces.pop_front();
  begin_next(replica);
  settle(piece, outcome);
  machine_.piece_ended(piece.what.piece, outcome, at(now_));
  if (!replicas_[replica].lost && !machine_.replicas().is_living(replica)) { // it lost one piece after the other
    for (const running& p : replicas_[replica].pieces)
      for (const piece_part& part : p.what.parts)
        mark(part, row_state::in_flight, row_state::waits);
    replicas_[replica] = {.pieces = {}, .lost = true};
  }
  obey();
}

void stream_world::settle(const running& piece, const piece_outcome& outcome) {
  const bool done = !outcome.lost && !outcome.why.failed();
  for (const piece_part& part : piece.what.parts) {
    mark(part, row_state::in_flight, done ? row_state::done : row_state::waits);
    const auto found = open_.find(part.request);
    if (found == open_.end())
      continue;
    if (done)
      found->second.done_by[piece.what.piece].emplace_back(part.first_row, part.rows);
    if (outcome.why.failed() && !outcome.lost && piece.what.parts.size() > 1)
      found->second.alone = true;
  }
}

void stream_world::mark(const piece_part& part, row_state from, row_state to) {
  const auto found = open_.find(part.request);
  if (found == open_.end())
    return;
  for (int64_t r = part.first_row; r < part.first_row + part.rows; ++r) {
    row_state& state = found->second.rows.at(static_cast<size_t>(r));
    if (state != from)
      FAIL("row " << r << " of request " << part.request << " is in state " << int(state) << ", not " << int(from));
    state = to;
  }
}

void stream_world::begin_next(size_t replica) {
  std::deque<running>& pieces = replicas_[replica].pieces;
  if (!pieces.empty() && pieces.front().ends < 0) {
    const replica_figures& f = truth.at(replica);
    const running& p = pieces.front();
    const double usual = jitter() * (f.fixed_seconds + static_cast<double>(p.rows) * f.row_seconds);
    pieces.front().ends = now_ + usual + extra({.what = p.what, .time = now_, .rows = p.rows});
  }
}

void stream_world::obey() {
  machine_.take_commands(commands_);
  for (const stream_command& c : commands_)
    if (const auto* start = std::get_if<start_piece>(&c))
      on(*start);
    else if (const auto* answer = std::get_if<answer_request>(&c))
      on(*answer);
    else {
      const double time = in_seconds(std::get<wake_at>(c).time);
      must(std::get<wake_at>(c).time > at(now_), "the machine wakes in the future");
      wake_ = wake_ ? std::min(*wake_, time) : time;
    }
  for (size_t r = 0; r < replicas_.size(); ++r)
    begin_next(r);
}

void stream_world::on(const start_piece& command) {
  replica_state& r = replicas_.at(command.replica);
  must(!r.lost, "a lost replica gets nothing");
  must(r.pieces.size() < options_.depth, "no more pieces in flight than depth");
  must(!command.parts.empty(), "a piece has parts");
  int64_t rows = 0;
  const account* first = nullptr;
  for (const piece_part& part : command.parts) {
    const auto found = open_.find(part.request);
    must(found != open_.end(), "what has been answered is never started");
    const account& a = found->second;
    must(!a.what.deadline || *a.what.deadline > at(now_), "what is late is never started");
    must(!a.what.pinned || *a.what.pinned == command.replica, "a pinned request runs on its replica");
    if (!a.what.divisible || a.alone)
      must(command.parts.size() == 1 && part.rows == a.what.rows, "what may not be cut and joined is not");
    if (first)
      must(first->what.key == a.what.key && first->what.divisible, "only requests of equal keys are joined");
    first = &a;
    mark(part, row_state::waits, row_state::in_flight);
    rows += part.rows;
  }
  if (command.parts.size() > 1)
    must(rows <= options_.max_batch, "a batch is no larger than it may");
  else if (first->what.divisible && options_.micro_batch > 0 && first->what.rows > options_.max_batch)
    must(rows <= options_.micro_batch, "a micro-batch is no larger than it may");
  r.pieces.push_back({.what = command, .rows = rows});
  if (keeps_history)
    started_.push_back({.what = command, .time = now_, .rows = rows});
}

void stream_world::on(const answer_request& command) {
  const auto found = open_.find(command.request);
  must(found != open_.end(), "a request is answered once");
  const account& a = found->second;
  if (options_.ordered)
    must(command.request == answered_, "answers are in order");
  ++answered_;
  if (!command.why.failed()) {
    int64_t next = 0;
    for (const gathered_part& p : command.parts) {
      must(p.first_row == next, "parts follow each other");
      const auto by = a.done_by.find(p.piece);
      must(by != a.done_by.end(), "parts are of pieces that ended well");
      must(std::count(by->second.begin(), by->second.end(), std::pair(p.first_row, p.rows)) == 1,
           "parts are what their pieces had");
      next += p.rows;
    }
    must(next == a.what.rows, "all rows are there");
  }
  if (command.why.code == errc::timeout && command.why.failed())
    must(options_.ordered || std::max(*a.what.deadline, a.submitted) >= at(now_),
         "what is late is answered at its deadline");
  if (keeps_history) {
    answer_at_[command.request] = answers_.size();
    answers_.push_back({.what = command, .time = now_});
  }
  open_.erase(found);
}

const stream_world::told& stream_world::answer_to(request_id request) const {
  REQUIRE(answer_at_.count(request) == 1);
  return answers_.at(answer_at_.at(request));
}

std::vector<int64_t> stream_world::rows_by_replica(request_id request) const {
  std::vector<int64_t> rows(replicas_.size(), 0);
  for (const started_piece& s : started_)
    for (const piece_part& part : s.what.parts)
      if (part.request == request)
        rows[s.what.replica] += part.rows;
  return rows;
}

} // namespace troupe::test
