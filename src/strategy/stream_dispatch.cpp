// What of a stream starts next, and on which replica.
#include "base/error.hpp"
#include "strategy/stream_machine.hpp"

#include <algorithm>

namespace troupe {

namespace {

/// The most rows of what waits that a piece may have, whoever runs it.
int64_t offered(const waiting_rows& w) {
  return w.use == row_use::cut && w.most > 0 ? std::min(w.rows, w.most) : w.rows;
}

} // namespace

void stream_machine::dispatch() {
  for (bool more = true; more;) {
    more = false;
    look_again_.reset();
    if (const waiting_rows* w = queue_.head(request_queue::shared))
      more = start_shared(*w);
    // Whoever has rows of its own does not wait for the others. On its fair turn it looks at all that waits, so that
    // replicas that are busy with their own rows cannot leave the shared ones to each other for ever.
    for (size_t r = 0; r < dispatcher_.size(); ++r)
      if (dispatcher_.has_place(r) && queue_.head(request_queue::lane_of(r)))
        more = start_on(r, dispatcher_.is_fair_turn(r)) || more;
  }
}

bool stream_machine::start_shared(const waiting_rows& head) {
  if (is_shared_out(head)) { // as soon as a replica has nothing else to do
    for (size_t r = 0; r < dispatcher_.size(); ++r)
      if (dispatcher_.has_place(r) && !queue_.head(request_queue::lane_of(r))) {
        make_shares(head);
        return true;
      }
    return false;
  }
  const int64_t rows = head.use == row_use::join ? std::min(head.group->rows, options_.max_batch) : offered(head);
  const dispatcher::choice c = dispatcher_.choose(rows, head.use == row_use::cut, queue_, now_);
  look_again_ = c.look_again;
  return c.replica && start_on(*c.replica, true);
}

bool stream_machine::is_shared_out(const waiting_rows& rows) const {
  return rows.lane == request_queue::shared && rows.use == row_use::cut && rows.most == 0 &&
         dispatcher_.cuts_into_shares();
}

const waiting_rows* stream_machine::next_for(size_t replica, bool of_shared_too) const {
  const bool fair = dispatcher_.is_fair_turn(replica);
  const auto next_of = [&](size_t lane) { return fair ? queue_.oldest(lane) : queue_.head(lane); };
  const waiting_rows* own = next_of(request_queue::lane_of(replica));
  const waiting_rows* shared = of_shared_too ? next_of(request_queue::shared) : nullptr;
  if (!own || !shared)
    return own ? own : shared;
  return (fair ? is_older{}(own, shared) : starts_before{}(own, shared)) ? own : shared;
}

bool stream_machine::start_on(size_t replica, bool of_shared_too) {
  const waiting_rows* first = next_for(replica, of_shared_too);
  if (!first)
    return false;
  if (is_shared_out(*first)) {
    make_shares(*first);
    return true;
  }
  int64_t rows = 0;
  std::vector<const waiting_rows*> batch = plan_piece(replica, *first, rows);
  if (!shed(replica, batch, rows)) // else others take their place in the piece
    start(replica, batch, rows);
  return true;
}

void stream_machine::make_shares(const waiting_rows& of) {
  waiting_rows part = of;
  const std::vector<int64_t> shares = dispatcher_.share(part.rows, queue_, now_);
  queue_.take(of, part.rows);
  part.use = row_use::whole;
  for (size_t r = 0; r < shares.size(); ++r) {
    if (shares[r] == 0)
      continue;
    part.lane = request_queue::lane_of(r);
    part.rows = shares[r];
    queue_.add(part);
    part.first += shares[r];
  }
}

std::vector<const waiting_rows*> stream_machine::plan_piece(size_t replica, const waiting_rows& first,
                                                            int64_t& rows) const {
  if (first.use == row_use::join) {
    std::vector<const waiting_rows*> batch = queue_.batch_of(first);
    for (const waiting_rows* w : batch)
      rows += w->rows;
    return batch;
  }
  rows = offered(first);
  if (first.use == row_use::cut && first.lane == request_queue::shared)
    rows = dispatcher_.cut(replica, rows, queue_);
  else if (first.use == row_use::cut && options_.micro_batch > 0)
    rows = std::min(rows, options_.micro_batch);
  return {&first};
}

bool stream_machine::shed(size_t replica, const std::vector<const waiting_rows*>& batch, int64_t rows) {
  const size_t others = waiting() - batch.size(); // requests that wait and are not of this piece
  if (others == 0)
    return false;
  const double seconds = dispatcher_.ends_in(replica, rows, now_) * dispatcher_.caution(replica);
  std::vector<request_id> late;
  for (const waiting_rows* w : batch)
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

void stream_machine::start(size_t replica, const std::vector<const waiting_rows*>& batch, int64_t rows) {
  start_piece command{.piece = started_++, .replica = replica, .parts = {}};
  const bool counts = batch.front()->lane == request_queue::shared;
  const bool is_whole = batch.size() > 1 || batch.front()->use != row_use::cut;
  int64_t taken = 0;
  for (const waiting_rows* w : batch) {
    const int64_t part = is_whole ? w->rows : rows;
    command.parts.push_back({w->request, w->first, part});
    taken += part;
    queue_.take(*w, part);
  }
  if (counts)
    dispatcher_.took(replica, taken);
  dispatcher_.start(replica, command.piece, taken, now_);
  pieces_.emplace(command.piece, flying{replica, command.parts});
  commands_.emplace_back(std::move(command));
}

} // namespace troupe
