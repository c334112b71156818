#include "strategy/dispatcher.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace troupe {

namespace {

/// Returns the first moment that is `seconds` later, a day at most.
run_time after(run_time now, double seconds) {
  constexpr double a_day = 86400;
  return now + std::chrono::nanoseconds(std::llround(std::min(seconds, a_day) * 1e9) + 1);
}

} // namespace

dispatcher::dispatcher(const machine_options& options, const request_queue& queue)
    : how_(options.how), depth_(options.depth), micro_batch_(options.micro_batch),
      min_piece_(options.min_piece > 0 ? options.min_piece : least_piece(options.micro_batch)), queue_(queue),
      replicas_(options) {
  if (how_ == distribution::plug_in) {
    expects(options.plugin != nullptr, "a strategy that is a plug-in has one");
    host_ = std::make_unique<strategy_host>(options.plugin, replicas_.size());
  }
}

void dispatcher::join(size_t replica, const replica_figures& figures) {
  replicas_.join(replica, figures);
  forget();
}

std::vector<piece_id> dispatcher::lose(size_t replica, const std::string& why) {
  std::vector<piece_id> pieces = replicas_.lose(replica, why);
  forget();
  return pieces;
}

void dispatcher::forget() {
  for (replica& r : replicas_.all())
    r.owed = 0;
  next_.reset();
  shares_.forget();
}

bool dispatcher::cuts_into_shares() const {
  return micro_batch_ == 0 && (host_ ? host_->shares() : how_ != distribution::stealing);
}

std::vector<int64_t> dispatcher::share(int64_t rows, run_time now) {
  if (host_)
    return host_->share(view(now), rows);
  next_.reset();
  return is_static() ? static_shares(rows) : adaptive_shares(rows, now);
}

std::vector<int64_t> dispatcher::static_shares(int64_t rows) {
  std::vector<share_figures> figures;
  for (const replica& r : replicas_.all()) {
    const replica_figures& f = r.predicted.figures();
    if (!r.living)
      figures.push_back({.begins_after = -1});
    else if (how_ == distribution::round_robin)
      figures.push_back({.row_seconds = 1});
    else
      figures.push_back({.begins_after = f.fixed_seconds, .row_seconds = f.row_seconds});
  }
  std::vector<double> wanted = shares_that_end_together(static_cast<double>(rows), figures);
  if (rows >= few_rows * static_cast<int64_t>(replicas_.size())) // what is owed is not worth new numbers of rows
    return whole_shares(rows, wanted);
  for (size_t i = 0; i < wanted.size(); ++i)
    wanted[i] += replicas_[i].owed;
  std::vector<int64_t> whole = whole_shares(rows, wanted);
  for (size_t i = 0; i < wanted.size(); ++i)
    replicas_[i].owed = wanted[i] - static_cast<double>(whole[i]);
  return whole;
}

std::vector<int64_t> dispatcher::adaptive_shares(int64_t rows, run_time now) {
  replicas_.compare_speeds(rows);
  const bool may_take_over = replicas_.may_take_over();
  std::vector<sharing_replica> all;
  for (size_t i = 0; i < replicas_.size(); ++i) {
    const replica& r = replicas_[i];
    const replica_figures& f = r.speed.figures();
    const double waiting = static_cast<double>(queue_.rows(request_queue::lane_of(i))) * f.row_seconds;
    sharing_replica& each = all.emplace_back();
    each.sizes = r.sizes;
    each.rests = r.rests();
    each.take_over_seconds = may_take_over ? r.seconds_to_take_over(rows) : std::numeric_limits<double>::infinity();
    each.size_seconds = r.speed.size_seconds();
    if (!r.living)
      continue;
    each.idle = {.begins_after = f.fixed_seconds, .row_seconds = f.row_seconds};
    each.now = {.begins_after = replicas_.load(r, now) + waiting + f.fixed_seconds, .row_seconds = f.row_seconds};
  }
  std::vector<int64_t> given = shares_.next(rows, all);
  const double work_seconds = static_cast<double>(rows) / rows_per_second(rows);
  for (size_t i = 0; i < given.size(); ++i) {
    replica& r = replicas_[i];
    if (!r.living)
      continue;
    if (given[i] > 0) {
      r.absence.end();
      continue;
    }
    r.absence.go_on(work_seconds);
    std::vector<int64_t> trial = shares_.with(i, rows, given);
    if (!r.absence.is_long(r.seconds_with_size(trial[i])))
      continue;
    r.absence.end_for_trial();
    given = std::move(trial);
  }
  return given;
}

std::vector<double> dispatcher::weights(int64_t rows) const {
  std::vector<double> all;
  double sum = 0;
  for (const replica& r : replicas_.all()) {
    all.push_back(r.living ? r.predicted.rows_per_second(rows) : 0);
    sum += all.back();
  }
  for (double& w : all)
    w /= sum;
  return all;
}

size_t dispatcher::whose_turn(int64_t rows) const {
  if (how_ == distribution::round_robin) {
    size_t next = last_; // at first, one before 0
    do
      next = next + 1 < replicas_.size() ? next + 1 : 0;
    while (!replicas_[next].living);
    return next;
  }
  const std::vector<double> weight = weights(rows);
  size_t most = SIZE_MAX;
  double most_owed = -std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < replicas_.size(); ++i)
    if (const double owed = replicas_[i].owed + static_cast<double>(rows) * weight[i];
        replicas_[i].living && owed > most_owed + 1e-9) {
      most = i;
      most_owed = owed;
    }
  return most;
}

std::optional<size_t> dispatcher::takes_whole(int64_t rows, size_t waiting, run_time now) {
  if (how_ != distribution::adaptive || rows >= too_many_rows_)
    return std::nullopt;
  replicas_.compare_speeds(rows);
  const int64_t step = share_step(rows, replicas_.size());
  size_t taking_part = 0, idle = 0;
  for (size_t i = 0; i < replicas_.size(); ++i) {
    const replica& r = replicas_[i];
    if (!r.living)
      continue;
    const bool is_idle = r.in_flight.empty() && queue_.rows(request_queue::lane_of(i)) == 0;
    if (is_idle && r.absence.is_long(r.seconds_with_size(step)))
      return std::nullopt; // it is tried with a share
    taking_part += r.rests() ? 0 : 1;
    idle += is_idle && !r.rests() ? 1 : 0;
  }
  return taking_part < 2 || idle >= waiting ? std::nullopt : choose_late(rows, false, now).replica;
}

dispatcher::choice dispatcher::idle_for_shares(int64_t rows, run_time now) const {
  double soonest = std::numeric_limits<double>::infinity(); // that one that does not rest would end all of them
  choice found;
  double alone = soonest; // the same of one that rests
  const bool may_take_over = replicas_.may_take_over();
  for (size_t i = 0; i < replicas_.size(); ++i) {
    const replica& r = replicas_[i];
    const int64_t own = queue_.rows(request_queue::lane_of(i));
    const bool is_idle = replicas_.has_place(i) && own == 0;
    if (is_idle && !r.rests())
      return {.replica = i};
    const double takes = r.rests() ? r.seconds_to_take_over(rows) : r.speed.seconds(static_cast<double>(rows));
    const double ends = takes + replicas_.load(r, now) + static_cast<double>(own) * r.speed.figures().row_seconds;
    if (r.living && !r.rests())
      soonest = std::min(soonest, ends);
    if (is_idle && may_take_over && ends < alone) {
      alone = ends;
      found.replica = i;
    }
  }
  if (!found.replica || alone < soonest)
    return found;
  return {.look_again = after(now, alone)};
}

dispatcher::choice dispatcher::choose(int64_t rows, bool may_be_cut, run_time now) {
  if (!replicas_.any_living())
    return {};
  if (host_)
    return choose_by_plugin(rows, may_be_cut, now);
  if (!is_static()) {
    replicas_.compare_speeds(rows);
    return choose_late(rows, may_be_cut, now);
  }
  if (!next_)
    next_ = whose_turn(may_be_cut && micro_batch_ > 0 ? std::min(rows, micro_batch_) : rows);
  return replicas_.has_place(*next_) ? choice{.replica = next_} : choice{};
}

strategy_host::view dispatcher::view(run_time now) {
  shown_.clear();
  for (size_t i = 0; i < replicas_.size(); ++i) {
    const replica& r = replicas_[i];
    const replica_figures &is = r.speed.figures(), &was = r.predicted.figures();
    shown_.push_back(
        {.flags = (r.living ? strategy_replica_living : 0u) | (replicas_.has_place(i) ? strategy_replica_free : 0u),
         .in_flight = static_cast<uint32_t>(r.in_flight.size()),
         .own_rows = queue_.rows(request_queue::lane_of(i)),
         .busy_s = replicas_.load(r, now),
         .fixed_s = is.fixed_seconds,
         .row_s = is.row_seconds,
         .predicted_fixed_s = was.fixed_seconds,
         .predicted_row_s = was.row_seconds});
  }
  return {.replicas = shown_,
          .now_s = std::chrono::duration<double>(now.time_since_epoch()).count(),
          .waiting_rows = queue_.rows(request_queue::shared)};
}

dispatcher::choice dispatcher::choose_by_plugin(int64_t rows, bool may_be_cut, run_time now) {
  const int64_t most = may_be_cut && micro_batch_ > 0 ? std::min(rows, micro_batch_) : rows;
  const strategy_host::choice found = host_->choose(view(now), most, may_be_cut);
  chosen_rows_ = found.rows;
  choice made{.replica = found.replica};
  if (!found.replica && found.wait_s > 0)
    made.look_again = after(now, found.wait_s);
  return made;
}

dispatcher::choice dispatcher::choose_late(int64_t rows, bool may_be_cut, run_time now) const {
  const double all_speeds = rows_per_second(rows);
  const bool may_take_over = replicas_.may_take_over();
  double speeds = 0, loads = 0; // rows a second; rows in flight
  double soonest = std::numeric_limits<double>::infinity(), best = soonest;
  choice found;
  for (size_t i = 0; i < replicas_.size(); ++i) {
    const replica& r = replicas_[i];
    if (!r.living)
      continue;
    int64_t taken = may_be_cut ? cut(r, rows, rows, all_speeds) : rows;
    if (r.in_flight.empty() && r.absence.is_long(r.seconds_with_size(taken)))
      return {.replica = i, .look_again = {}};
    if (r.rests() && !may_take_over)
      continue;
    taken = r.rests() ? rows : taken;
    const double begins = replicas_.load(r, now) +
                          static_cast<double>(queue_.rows(request_queue::lane_of(i))) * r.speed.figures().row_seconds;
    const double ends =
        begins + (r.rests() ? r.seconds_to_take_over(taken) : r.speed.seconds(static_cast<double>(taken)));
    speeds += r.speed.rows_per_second(taken);
    loads += begins * r.speed.rows_per_second(taken);
    soonest = std::min(soonest, ends);
    if (r.in_flight.size() < depth_ && ends < best) {
      best = ends;
      found.replica = i;
    }
  }
  // When all that is in flight and waits would be done if it could be shared ideally.
  const double all_done = (static_cast<double>(queue_.rows(request_queue::shared)) + loads) / speeds;
  const double enough = found.replica && replicas_[*found.replica].rests() ? soonest : std::max(soonest, all_done);
  if (!found.replica || best <= enough * (1 + 1e-9))
    return found;
  return {.look_again = after(now, best)};
}

void dispatcher::took(size_t replica, int64_t rows) {
  if (host_)
    return;
  if (!is_static()) {
    for (size_t i = 0; i < replicas_.size(); ++i)
      if (replica_roster::replica& r = replicas_[i]; i != replica && r.living && r.in_flight.empty())
        r.absence.go_on(static_cast<double>(rows) / rows_per_second(rows));
    replica_roster::replica& taker = replicas_[replica];
    if (taker.absence.is_long(taker.seconds_with_size(rows)))
      taker.absence.end_for_trial();
    else
      taker.absence.end();
    return;
  }
  next_.reset();
  last_ = replica;
  if (how_ == distribution::round_robin)
    return;
  const std::vector<double> weight = weights(rows);
  for (size_t i = 0; i < replicas_.size(); ++i)
    replicas_[i].owed += static_cast<double>(rows) * weight[i];
  replicas_[replica].owed -= static_cast<double>(rows);
}

double dispatcher::rows_per_second(int64_t rows) const {
  double all = 0;
  for (const replica& r : replicas_.all())
    if (r.living)
      all += r.speed.rows_per_second(micro_batch_ > 0 ? std::min(rows, micro_batch_) : rows);
  return all;
}

int64_t dispatcher::cut(size_t replica, int64_t offered, int64_t left) const {
  if (host_)
    return std::min(chosen_rows_, offered);
  return cut(replicas_[replica], offered, left, rows_per_second(offered));
}

int64_t dispatcher::cut(const replica& r, int64_t offered, int64_t left, double all_speeds) const {
  const int64_t most = micro_batch_ > 0 ? std::min(micro_batch_, offered) : offered;
  if (how_ != distribution::stealing)
    return most;
  const double part = r.speed.rows_per_second(most) / all_speeds;
  const int64_t limit = micro_batch_ > 0 ? micro_batch_ : std::numeric_limits<int64_t>::max();
  return guided_piece({.waiting = static_cast<double>(queue_.rows(request_queue::shared)),
                       .left = left,
                       .least = min_piece_,
                       .most = left > offered ? most : limit},
                      part, r.sizes);
}

} // namespace troupe
