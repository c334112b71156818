#include "strategy/replica_roster.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace troupe {

namespace {

constexpr size_t losses_that_count = 3;
constexpr size_t sizes_that_count = 256;
constexpr size_t prepared_that_count = 32; // in a row, until they are thought to be the rule

double seconds_between(run_time from, run_time to) {
  return std::chrono::duration<double>(to - from).count();
}

void check(const replica_figures& f) {
  if (!(f.row_seconds >= 0 && f.fixed_seconds >= 0 && std::isfinite(f.row_seconds) && std::isfinite(f.fixed_seconds)))
    fail(errc::invalid_argument,
         "a replica is said to take {} s a row and {} s a piece; both must be finite and not negative", f.row_seconds,
         f.fixed_seconds);
}

} // namespace

replica_roster::replica_roster(const machine_options& options) : depth_(options.depth), fair_turn_(options.fair_turn) {
  for (const replica_figures& f : options.replicas)
    join(replicas_.size(), f);
}

bool replica_roster::any_living() const {
  return std::any_of(replicas_.begin(), replicas_.end(), [](const replica& r) { return r.living; });
}

void replica_roster::join(size_t replica, const replica_figures& figures) {
  check(figures);
  if (replica > replicas_.size() || is_living(replica))
    fail(errc::invalid_argument, "replica {} cannot join: there are {}, and it is not one that was lost", replica,
         replicas_.size());
  if (replica == replicas_.size())
    replicas_.emplace_back(figures);
  else
    replicas_[replica] = replica_roster::replica(figures);
}

std::vector<piece_id> replica_roster::lose(size_t replica, const std::string& why) {
  replica_roster::replica& r = replicas_[replica];
  std::vector<piece_id> pieces;
  for (const flying_piece& p : r.in_flight)
    pieces.push_back(p.piece);
  r.in_flight.clear();
  r.living = false;
  r.lost_because = why;
  return pieces;
}

failure replica_roster::device_lost(size_t replica) const {
  std::string why = replica < replicas_.size() ? replicas_[replica].lost_because : "";
  if (why.empty())
    why = "it is not there";
  if (!any_living())
    return {errc::device_lost, fmt::format("no replica is left; of replica {}: {}", replica, why)};
  return {errc::device_lost, fmt::format("replica {}, to which the request is pinned, is lost: {}", replica, why)};
}

void replica_roster::start(size_t replica, piece_id piece, int64_t rows, run_time now) {
  replica_roster::replica& r = replicas_[replica];
  r.turns = is_fair_turn(replica) ? 0 : r.turns + 1;
  const bool is_first = r.is_new_size(rows);
  if (is_first && r.sizes.size() == sizes_that_count)
    r.sizes.erase(r.sizes.begin());
  if (is_first)
    r.sizes.push_back(rows);
  r.in_flight.push_back({piece, rows, now, is_first});
}

void replica_roster::end(size_t replica, piece_id piece, ending how, run_time now) {
  replica_roster::replica& r = replicas_[replica];
  const auto p =
      std::find_if(r.in_flight.begin(), r.in_flight.end(), [&](const flying_piece& f) { return f.piece == piece; });
  expects(p != r.in_flight.end(), "a piece ends on the replica that has it");
  // Pieces of a replica run one after the other, so its time is that since the one before ended.
  if (how == ending::done || how == ending::unusual) {
    const double rows = static_cast<double>(p->rows), seconds = seconds_between(std::max(p->started, r.last_end), now);
    r.prepared_last = p->is_first || how == ending::unusual ? r.prepared_last + 1 : 0;
    // Such a piece says how fast the replica is only if it was no slower than expected, or there are no others.
    if (r.prepared_last > 0 && r.prepared_last <= prepared_that_count && seconds > r.speed.seconds(rows))
      r.speed.prepared(rows, seconds);
    else if (r.absence.take_trial())
      r.speed.measured_anew(rows, seconds, r.predicted.figures());
    else
      r.speed.measured(rows, seconds);
  }
  r.lost_last = how == ending::lost ? r.lost_last + 1 : 0;
  r.last_end = now;
  r.in_flight.erase(p);
}

bool replica_roster::only_loses(size_t replica) const {
  return replicas_[replica].lost_last >= losses_that_count;
}

double replica_roster::replica::seconds_with_size(int64_t rows) const {
  // Until it is measured, a prediction may be far too good, and what first pieces took is all that is known.
  return speed.seconds(static_cast<double>(rows)) +
         (is_new_size(rows) || !speed.is_measured() ? speed.size_seconds().value_or(replica_speed::unknown_size_seconds)
                                                    : 0);
}

void replica_roster::compare_speeds(int64_t rows) {
  std::vector<std::pair<double, replica_roster::replica*>> living; // by rows a second
  const auto compare = [&](replica_speed replica_roster::replica::*by, bool measured) {
    for (auto& [speed, r] : living)
      speed = (r->*by).rows_per_second(rows);
    std::ranges::stable_sort(living, std::greater<>(), [](const auto& each) { return each.first; });
    double faster = 0;
    for (const auto& [speed, r] : living) {
      if (r->speed.is_measured() == measured)
        r->gain = faster > 0 ? speed / faster : 1;
      faster += speed;
    }
  };
  for (replica_roster::replica& r : replicas_)
    if (r.living)
      living.emplace_back(0, &r);
  // What was never measured is compared by predictions alone: others may be slow for a moment, and a prediction be too
  // good.
  compare(&replica_roster::replica::predicted, false);
  compare(&replica_roster::replica::speed, true);
  // Each may rest for the sake of another one: what was measured for predictions, what was predicted for one that was
  // measured to be slower. Then the one that seems fastest works.
  if (!living.empty() && std::ranges::all_of(living, [](const auto& each) { return each.second->rests(); }))
    living.front().second->gain = 1;
}

bool replica_roster::may_take_over() const {
  return std::ranges::none_of(replicas_, [](const auto& r) { return r.living && !r.rests() && r.prepares(); });
}

std::string replica_roster::why_rests(size_t replica) const {
  const replica_roster::replica& r = replicas_[replica];
  return r.living && r.rests() ? fmt::format("it would add {:.1f} % to the others' rows a second", 100 * r.gain) : "";
}

double replica_roster::load(const replica& r, run_time now) const {
  if (r.in_flight.empty())
    return 0;
  const flying_piece& first = r.in_flight.front();
  const double taken = seconds_between(std::max(first.started, r.last_end), now);
  // A piece that takes longer than it should is thought to take as long again as it is late.
  const auto expected = [&](const flying_piece& p) {
    return r.speed.seconds(static_cast<double>(p.rows)) + (p.is_first ? r.speed.size_seconds().value_or(0) : 0);
  };
  double seconds = std::abs(expected(first) - taken);
  for (size_t i = 1; i < r.in_flight.size(); ++i)
    seconds += expected(r.in_flight[i]);
  return seconds;
}

double replica_roster::may_take(size_t replica, int64_t rows, run_time now) const {
  const replica_roster::replica& r = replicas_[replica];
  return (load(r, now) + r.speed.seconds(static_cast<double>(rows))) * r.speed.caution();
}

double replica_roster::least_seconds(int64_t rows) const {
  double least = std::numeric_limits<double>::infinity();
  for (const replica& r : replicas_)
    if (r.living)
      least = std::min(least, r.speed.seconds(static_cast<double>(rows)));
  return std::isfinite(least) ? least : 0;
}

} // namespace troupe
