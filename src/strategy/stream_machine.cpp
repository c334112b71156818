#include "strategy/stream_machine.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <cmath>

namespace troupe {

namespace {

void check(const machine_options& o) {
  const auto at_least = [](int64_t value, int64_t least, const char* name) {
    if (value < least)
      fail(errc::invalid_argument, "{} is {}; it must be at least {}", name, value, least);
  };
  at_least(static_cast<int64_t>(o.depth), 1, "depth");
  at_least(static_cast<int64_t>(o.queue_limit), 1, "queue_limit");
  at_least(static_cast<int64_t>(o.fair_turn), 1, "fair_turn");
  at_least(o.micro_batch, 0, "micro_batch");
  at_least(o.min_piece, 0, "min_piece");
  at_least(o.max_batch, 0, "max_batch");
  at_least(o.max_delay.count(), 0, "max_delay");
}

/// Errors that one request of a batch may have caused for all.
bool may_come_from_inputs(errc code) {
  return code == errc::invalid_input || code == errc::unsupported || code == errc::out_of_memory;
}

const machine_options& checked(const machine_options& o) {
  check(o);
  return o;
}

} // namespace

stream_machine::stream_machine(const machine_options& options)
    : options_(checked(options)), queue_(options.max_batch), dispatcher_(options, queue_),
      planner_(options, queue_, dispatcher_, [this](const planned_piece& piece) { start(piece); }) {}

void stream_machine::take_commands(std::vector<stream_command>& into) {
  into.clear();
  into.swap(commands_);
}

void stream_machine::pass_time(run_time now) {
  now_ = std::max(now_, now);
  queue_.advance(now_);
  end_late();
}

void stream_machine::go_on() {
  std::optional<run_time> next; // to be woken
  try {
    next = planner_.start_all(now_);
  } catch (const error& wrong) { // a strategy plug-in's answer; another request gets it asked again
    answer_all({wrong.code(), wrong.what()});
  }
  // What was asked for stays asked for until it has come: most events need no new call.
  if (armed_ && *armed_ <= now_)
    armed_.reset();
  const auto earlier = [&](std::optional<run_time> t) {
    if (t && (!next || *t < *next))
      next = t;
  };
  earlier(queue_.next_due());
  if (!deadlines_.empty())
    earlier(deadlines_.begin()->first);
  if (next && (!armed_ || *next < *armed_)) {
    armed_ = next;
    commands_.emplace_back(wake_at{*next});
  }
}

// -- events

std::optional<request_id> stream_machine::submit(const stream_request& request, run_time now) {
  if (request.rows < 1)
    fail(errc::invalid_argument, "a request has {} rows; it must have at least one", request.rows);
  if (request.pinned && *request.pinned >= replicas().size())
    fail(errc::invalid_argument, "a request is pinned to replica {}, but there are {}", *request.pinned,
         replicas().size());
  if (request.micro_batch < 0)
    fail(errc::invalid_argument, "a request's micro_batch is {}; it must be at least 0", request.micro_batch);
  pass_time(now);
  if (!has_room()) {
    go_on();
    return std::nullopt;
  }
  const request_id id = requests_++;
  open_request& r =
      open_.emplace(id, open_request{.what = request, .submitted = now_, .rows_left = request.rows, .done = {}})
          .first->second;
  if (options_.ordered)
    unsaid_.emplace_back();
  if (request.deadline)
    deadlines_.insert({*request.deadline, id});
  if (!replicas().any_living() || (request.pinned && !replicas().is_living(*request.pinned))) {
    answer(id, replicas().device_lost(request.pinned.value_or(0)));
  } else {
    enqueue(id, r, 0, request.rows, false);
    end_late(); // its deadline may have passed
  }
  go_on();
  return id;
}

void stream_machine::piece_ended(piece_id piece, const piece_outcome& outcome, run_time now) {
  pass_time(now);
  if (auto node = pieces_.extract(piece)) {
    const flying& p = node.mapped();
    using ending = replica_roster::ending;
    dispatcher_.replicas().end(p.replica, piece,
                               outcome.lost           ? ending::lost
                               : outcome.why.failed() ? ending::failed
                               : !outcome.is_usual    ? ending::unusual
                                                      : ending::done,
                               now_);
    if (outcome.lost) {
      give_back(p, SIZE_MAX);
      if (replicas().only_loses(p.replica))
        lose(p.replica, outcome.why.failed() ? outcome.why.message : "it lost one piece after the other");
    } else if (outcome.why.failed()) {
      piece_failed(p, outcome.why);
    } else {
      for (const auto& [request, first_row, rows] : p.parts) {
        const auto found = open_.find(request);
        if (found == open_.end())
          continue;
        found->second.done.push_back({piece, first_row, rows});
        if ((found->second.rows_left -= rows) == 0)
          answer(request, {});
      }
    }
  }
  go_on();
}

void stream_machine::cancel(request_id request, run_time now) {
  pass_time(now);
  answer(request, {errc::cancelled, "the request was cancelled"});
  go_on();
}

void stream_machine::replica_lost(size_t replica, const std::string& why, run_time now) {
  pass_time(now);
  lose(replica, why);
  go_on();
}

void stream_machine::replica_joined(size_t replica, const replica_figures& figures, run_time now) {
  pass_time(now);
  dispatcher_.join(replica, figures);
  go_on();
}

void stream_machine::tick(run_time now) {
  pass_time(now);
  go_on();
}

void stream_machine::close(run_time now) {
  pass_time(now);
  answer_all({errc::cancelled, "the stream was closed before the request was answered"});
  go_on();
}

// -- parts

bool stream_machine::shed(const planned_piece& piece) {
  const size_t others = waiting() - piece.rows_of.size(); // requests that wait and are not of this piece
  if (others == 0)
    return false;
  const double seconds = dispatcher_.replicas().may_take(piece.replica, piece.rows, now_);
  std::vector<request_id> late;
  for (const waiting_rows* w : piece.rows_of)
    if (const auto& deadline = open_.at(w->request).what.deadline;
        deadline && std::chrono::duration<double>(*deadline - now_).count() < seconds)
      late.push_back(w->request);
  for (request_id id : late)
    answer(id,
           {errc::timeout,
            fmt::format("the request was not started: it would be ready in {:.3g} s, after its deadline, and {} other "
                        "requests wait; submit fewer at a time, or allow more time",
                        seconds, others)});
  return !late.empty();
}

void stream_machine::start(const planned_piece& piece) {
  if (shed(piece)) // others take their place in the piece
    return;
  start_piece command{.piece = started_++, .replica = piece.replica, .parts = {}};
  const waiting_rows& first = *piece.rows_of.front();
  const bool counts = first.lane == request_queue::shared;
  const bool is_whole = piece.rows_of.size() > 1 || first.use != row_use::cut;
  int64_t taken = 0;
  for (const waiting_rows* w : piece.rows_of) {
    const int64_t part = is_whole ? w->rows : piece.rows;
    command.parts.push_back({w->request, w->first, part});
    taken += part;
    queue_.take(*w, part);
  }
  if (counts)
    dispatcher_.took(piece.replica, taken);
  dispatcher_.replicas().start(piece.replica, command.piece, taken, now_);
  pieces_.emplace(command.piece, flying{piece.replica, command.parts, piece.could_be_shares});
  commands_.emplace_back(std::move(command));
}

void stream_machine::enqueue(request_id id, const open_request& request, int64_t first, int64_t rows, bool came_back) {
  const stream_request& what = request.what;
  waiting_rows w{.request = id,
                 .first = first,
                 .rows = rows,
                 .most = what.micro_batch,
                 .key = what.key,
                 .priority = what.priority,
                 .came_back = came_back,
                 .due = now_};
  w.lane = what.pinned ? request_queue::lane_of(*what.pinned) : request_queue::shared;
  if (what.divisible && !request.alone)
    w.use = what.rows <= options_.max_batch ? row_use::join : row_use::cut;
  if (w.use == row_use::join && !came_back) {
    // Its deadline must leave twice the time that it needs.
    w.due = request.submitted + std::min<std::chrono::nanoseconds>(options_.max_delay, std::chrono::hours(24));
    const double needed = std::min(2 * replicas().least_seconds(rows), 86400.0);
    if (what.deadline)
      w.due = std::min(w.due, *what.deadline - std::chrono::nanoseconds(std::llround(needed * 1e9)));
  }
  queue_.add(w);
}

void stream_machine::give_back(const flying& piece, size_t lost_replica) {
  for (const piece_part& part : piece.parts) {
    const auto found = open_.find(part.request);
    if (found == open_.end())
      continue;
    if (found->second.what.pinned && *found->second.what.pinned == lost_replica)
      answer(part.request, replicas().device_lost(lost_replica));
    else
      enqueue(part.request, found->second, part.first_row, part.rows, true);
  }
}

void stream_machine::piece_failed(const flying& piece, const failure& why) {
  const bool is_cut = piece.could_be_shares && why.code == errc::out_of_memory;
  const bool was_joined = piece.parts.size() > 1 && may_come_from_inputs(why.code);
  if (is_cut)
    dispatcher_.cut_from(piece.parts.front().rows);
  for (const piece_part& part : piece.parts) {
    const auto found = open_.find(part.request);
    if (found == open_.end())
      continue;
    if (is_cut || was_joined) {
      found->second.alone = found->second.alone || was_joined;
      enqueue(part.request, found->second, part.first_row, part.rows, true);
    } else {
      answer(part.request, why);
    }
  }
}

void stream_machine::lose(size_t replica, const std::string& why) {
  if (!replicas().is_living(replica))
    return;
  for (piece_id id : dispatcher_.lose(replica, why)) {
    const flying piece = std::move(pieces_.extract(id).mapped());
    give_back(piece, replica);
  }
  for (const waiting_rows& w : queue_.clear(request_queue::lane_of(replica)))
    if (const auto found = open_.find(w.request); found == open_.end())
      continue; // several shares of a request that has been answered
    else if (found->second.what.pinned)
      answer(w.request, replicas().device_lost(replica));
    else
      enqueue(w.request, found->second, w.first, w.rows, true);
  if (!replicas().any_living())
    answer_all(replicas().device_lost(replica));
}

// -- answers

void stream_machine::answer(request_id id, failure why) {
  auto node = open_.extract(id);
  if (!node)
    return;
  open_request& r = node.mapped();
  if (r.what.deadline)
    deadlines_.erase({*r.what.deadline, id});
  queue_.remove(id);
  answer_request a{.request = id, .parts = {}, .why = std::move(why)};
  if (!a.why.failed()) {
    a.parts = std::move(r.done);
    std::sort(a.parts.begin(), a.parts.end(),
              [](const gathered_part& x, const gathered_part& y) { return x.first_row < y.first_row; });
  }
  if (!options_.ordered) {
    commands_.emplace_back(std::move(a));
    return;
  }
  unsaid_[id - first_unsaid_] = std::move(a);
  ++held_;
  for (; !unsaid_.empty() && unsaid_.front(); ++first_unsaid_, --held_) {
    commands_.emplace_back(std::move(*unsaid_.front()));
    unsaid_.pop_front();
  }
}

void stream_machine::answer_all(const failure& why) {
  std::vector<request_id> all;
  for (const auto& [id, request] : open_)
    all.push_back(id);
  std::sort(all.begin(), all.end());
  for (request_id id : all)
    answer(id, why);
}

void stream_machine::end_late() {
  while (!deadlines_.empty() && deadlines_.begin()->first <= now_) {
    const request_id id = deadlines_.begin()->second;
    const double seconds = std::chrono::duration<double>(now_ - open_.at(id).submitted).count();
    answer(id,
           {errc::timeout,
            fmt::format("the request's deadline passed {:.3f} s after it was submitted; {} requests wait for a replica",
                        seconds, waiting())});
  }
}

size_t stream_machine::records() const {
  size_t n = open_.size() + deadlines_.size() + pieces_.size() + unsaid_.size() + commands_.size() + queue_.records();
  for (const auto& [id, r] : open_)
    n += r.done.size();
  for (const auto& [id, p] : pieces_)
    n += p.parts.size();
  return n;
}

} // namespace troupe
