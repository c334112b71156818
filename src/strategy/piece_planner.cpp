#include "strategy/piece_planner.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <numeric>

namespace troupe {

namespace {

/// Returns the most waiting rows that a piece may have, on any replica.
int64_t offered(const waiting_rows& w) {
  return w.use == row_use::cut && w.most > 0 ? std::min(w.rows, w.most) : w.rows;
}

} // namespace

std::optional<run_time> piece_planner::start_all(run_time now) {
  std::optional<run_time> look_again;
  for (bool more = true; more;) {
    more = false;
    look_again.reset();
    if (const waiting_rows* w = queue_.head(request_queue::shared))
      more = start_shared(*w, now, look_again);
    // A replica with rows of its own does not wait for the others. On its fair turn it looks at all rows, so that
    // replicas that are busy with their own rows cannot leave the shared ones to each other for ever.
    const replica_roster& replicas = dispatcher_.replicas();
    for (size_t r = 0; r < replicas.size(); ++r)
      if (replicas.has_place(r) && queue_.head(request_queue::lane_of(r)))
        more = start_on(r, replicas.is_fair_turn(r), now) || more;
  }
  return look_again;
}

bool piece_planner::start_shared(const waiting_rows& head, run_time now, std::optional<run_time>& look_again) {
  if (is_shared_out(head)) { // as soon as a replica has nothing else to do
    if (const auto whole = dispatcher_.takes_whole(head.rows, queue_.requests(request_queue::shared), now)) {
      start_({.replica = *whole, .rows_of = {&head}, .rows = head.rows, .could_be_shares = true});
      return true;
    }
    const dispatcher::choice idle = dispatcher_.idle_for_shares(head.rows, now);
    look_again = idle.look_again;
    if (idle.replica)
      make_shares(head, now);
    return idle.replica.has_value();
  }
  const int64_t rows = head.use == row_use::join ? std::min(head.group->rows, max_batch_) : offered(head);
  const dispatcher::choice c = dispatcher_.choose(rows, head.use == row_use::cut, now);
  look_again = c.look_again;
  return c.replica && start_on(*c.replica, true, now);
}

bool piece_planner::is_shared_out(const waiting_rows& rows) const {
  return rows.lane == request_queue::shared && rows.use == row_use::cut && rows.most == 0 &&
         dispatcher_.cuts_into_shares();
}

const waiting_rows* piece_planner::next_for(size_t replica, bool of_shared_too) const {
  const bool fair = dispatcher_.replicas().is_fair_turn(replica);
  const auto next_of = [&](size_t lane) { return fair ? queue_.oldest(lane) : queue_.head(lane); };
  const waiting_rows* own = next_of(request_queue::lane_of(replica));
  const waiting_rows* shared = of_shared_too ? next_of(request_queue::shared) : nullptr;
  if (!own || !shared)
    return own ? own : shared;
  return (fair ? is_older{}(own, shared) : starts_before{}(own, shared)) ? own : shared;
}

bool piece_planner::start_on(size_t replica, bool of_shared_too, run_time now) {
  const waiting_rows* first = next_for(replica, of_shared_too);
  if (!first)
    return false;
  if (is_shared_out(*first)) {
    make_shares(*first, now);
    return true;
  }
  start_(plan_piece(replica, *first));
  return true;
}

void piece_planner::make_shares(const waiting_rows& of, run_time now) {
  waiting_rows part = of;
  const std::vector<int64_t> shares = dispatcher_.share(part.rows, now);
  expects(std::accumulate(shares.begin(), shares.end(), int64_t{0}) == of.rows, "a request's shares have all its rows");
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

planned_piece piece_planner::plan_piece(size_t replica, const waiting_rows& first) const {
  planned_piece piece{.replica = replica, .rows_of = {&first}, .rows = offered(first)};
  if (first.use == row_use::join) {
    piece.rows_of = queue_.batch_of(first);
    piece.rows = 0;
    for (const waiting_rows* w : piece.rows_of)
      piece.rows += w->rows;
  } else if (first.use == row_use::cut && first.lane == request_queue::shared) {
    piece.rows = dispatcher_.cut(replica, piece.rows, first.rows);
  } else if (first.use == row_use::cut && micro_batch_ > 0) {
    piece.rows = std::min(piece.rows, micro_batch_);
  }
  return piece;
}

} // namespace troupe
