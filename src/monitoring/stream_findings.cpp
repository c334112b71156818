#include "monitoring/stream_findings.hpp"

#include "monitoring/bottlenecks.hpp"
#include "monitoring/trends.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace troupe::monitoring {
namespace {

/// What a replica did between the first sample and the last.
struct replica_work {
  const replica_stats* now = nullptr;
  double pieces = 0, rows = 0;
  double busy = 0; // part of the time

  std::string name() const { return fmt::format("{}", fmt::join(now->devices, ", ")); }
  /// Seconds that one row takes, its share of a piece's own time included.
  double row_s() const { return rows > 0 ? (now->row_ms + now->piece_ms * pieces / rows) / 1e3 : now->row_ms / 1e3; }
};

class stream_search {
public:
  explicit stream_search(std::span<const monitor_sample> samples)
      : samples_(samples), queue_(samples.back().queue), seconds_(samples.back().at_s - samples.front().at_s) {
    const auto& before = samples.front().queue.replicas;
    for (size_t r = 0; r < queue_.replicas.size(); ++r) {
      const replica_stats none, &b = r < before.size() ? before[r] : none, &n = queue_.replicas[r];
      work_.push_back({.now = &n,
                       .pieces = rise(b.pieces, n.pieces),
                       .rows = rise(b.rows, n.rows),
                       .busy = std::min(rise(b.busy_ms, n.busy_ms) / 1e3 / seconds_, 1.0)});
      busiest_ = std::max(busiest_, work_.back().busy);
    }
  }

  std::vector<finding> run() {
    if (busiest_ <= 0)
      return {};
    lost_replicas();
    late_requests();
    idle_replicas();
    queue();
    small_pieces();
    rank(found_);
    return std::move(found_);
  }

private:
  void add(std::string cause, std::string where, std::string what, double lost, std::string advice, double gain,
           severity at_least = severity::note) {
    found_.push_back({.severity = std::max(severity_of(gain), at_least),
                      .cause = std::move(cause),
                      .where = std::move(where),
                      .what = std::move(what),
                      .lost = lost,
                      .advice = std::move(advice),
                      .gain = gain});
  }

  /// Returns the part of all replicas' speed that one has, by what its rows take.
  double share_of_speed(const replica_work& one) const {
    double all = 0;
    for (const replica_work& w : work_)
      all += w.row_s() > 0 ? 1 / w.row_s() : 0;
    return all > 0 && one.row_s() > 0 ? 1 / one.row_s() / all : 0;
  }

  void lost_replicas() {
    for (const replica_work& w : work_)
      if (!w.now->living)
        add("replica_lost", w.name(), "takes no more requests: " + w.now->why_not, share_of_speed(w),
            "see what `troupe devices` says of it; or leave it out: --devices, --hosts", share_of_speed(w),
            severity::critical);
  }

  void late_requests() {
    const double late = rise(samples_.front().queue.late, queue_.late);
    const double answered = rise(samples_.front().queue.answered, queue_.answered);
    if (late > 0 && answered > 0)
      add("requests_late", "",
          fmt::format("{:.0f} of {:.0f} requests were not answered by their deadline", late, answered), 0,
          "allow more time, submit fewer at a time (stream_options::queue_limit, --in-flight), or give the stream more "
          "devices: --devices, --hosts",
          0, late > 0.01 * answered ? severity::warning : severity::note);
  }

  /// Returns how many rows a replica would do if it were busy for this part of the time.
  double rows_in(const replica_work& w, double busy) const {
    if (w.busy > 0)
      return w.rows * busy / w.busy;
    return w.row_s() > 0 ? busy * seconds_ / w.row_s() : 0;
  }

  void idle_replicas() {
    double sum = 0, rows = 0, rows_if_busy = 0;
    size_t living = 0;
    const replica_work* laziest = nullptr;
    for (const replica_work& w : work_) {
      if (!w.now->living)
        continue;
      sum += w.busy;
      rows += w.rows;
      rows_if_busy += rows_in(w, busiest_);
      ++living;
      if (!laziest || w.busy < laziest->busy)
        laziest = &w;
    }
    if (living < 2 || rows <= 0 || rows_if_busy <= 0 || busiest_ < 0.5 || laziest->busy > busiest_ / 2)
      return;
    const double mean = sum / static_cast<double>(living), gain = 1 - rows / rows_if_busy;
    if (gain < least_gain)
      return;
    add("replica_idle", laziest->name(),
        fmt::format("busy {:.0f} % of the time, the busiest replica {:.0f} %", 100 * laziest->busy, 100 * busiest_),
        1 - mean,
        "let an idle replica take the next piece, and cut pieces small enough for all: --strategy work-stealing "
        "--micro-batch",
        gain);
  }

  void queue() {
    size_t fewest = SIZE_MAX, most = 0;
    double busy = 0, mean = 0, answered = rise(samples_.front().queue.answered, queue_.answered);
    for (const replica_work& w : work_)
      busy += w.busy / static_cast<double>(work_.size());
    // The first sample may be from before the work, the last from after it.
    const auto inner = samples_.size() > 2 ? samples_.subspan(1, samples_.size() - 2) : samples_;
    for (const monitor_sample& s : inner) {
      fewest = std::min(fewest, s.queue.waiting);
      most = std::max(most, s.queue.waiting);
      mean += static_cast<double>(s.queue.waiting) / static_cast<double>(inner.size());
    }
    if (fewest > 0 && busy > 0.8 && answered > 0)
      add("queue_full", "",
          fmt::format("{} to {} requests wait at any time, {:.1f} ms each, and replicas are busy {:.0f} % of the time",
                      fewest, most, 1e3 * mean * seconds_ / answered, 100 * busy),
          0, "give the stream more devices: --devices, --hosts; or join requests: --max-batch", 0, severity::warning);
    if (most == 0 && busy < 0.5 && answered > 0)
      add("queue_empty", "",
          fmt::format("no request waits, and replicas are busy {:.0f} % of the time: they wait for requests",
                      100 * busy),
          1 - busy, "have more requests under way at a time: session::submit, --in-flight; the gain is in throughput",
          1 - busy);
  }

  /// What pieces cost beside their rows.
  void small_pieces() {
    double beside = 0, all = 0, rows = 0, pieces = 0, busy = 0;
    for (const replica_work& w : work_) {
      beside += w.pieces * w.now->piece_ms;
      all += w.pieces * w.now->piece_ms + w.rows * w.now->row_ms;
      rows += w.rows;
      pieces += w.pieces;
      busy += w.busy * seconds_ * 1e3;
    }
    if (all < busy / 2) // it is something else that takes the time
      return;
    if (queue_.rows.empty() || all <= 0 || beside / all < 2 * least_gain)
      return;
    const double share = beside / all, size = rows / pieces;
    const auto twice = static_cast<int64_t>(std::ceil(2 * size));
    add("small_pieces", "",
        fmt::format("pieces have {:.1f} rows, and {:.0f} % of their time is the same for any number of rows", size,
                    100 * share),
        share, fmt::format("take twice as many rows at once: --max-batch {} or --micro-batch {}", twice, twice),
        share / 2);
  }

  std::span<const monitor_sample> samples_;
  const stream_stats& queue_;
  const double seconds_;
  std::vector<replica_work> work_;
  double busiest_ = 0;
  std::vector<finding> found_;
};

} // namespace

std::vector<finding> stream_findings(std::span<const monitor_sample> samples) {
  if (samples.size() < 2 || samples.back().at_s <= samples.front().at_s)
    return {};
  return stream_search(samples).run();
}

} // namespace troupe::monitoring
