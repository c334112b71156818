// Rows that wait for a replica, in the order in which they should start.
//
// There is a lane of what any replica may run, and one for each replica of what only that one runs: its shares of
// requests that were cut, and pinned requests. In a lane, rows that came back from a lost piece go first, then by
// priority, then by age.
//
// Requests to be joined form groups of equal keys. A group is ready if it has rows enough for a full batch or one of
// them has waited as long as it may; only ready groups are seen. All else is ready at once.
//
// Each change costs O(log n); `remove` and `take` also grow with the parts in which a request waits, which replicas and
// depth bound.
#pragma once

#include "strategy/stream.hpp"

#include <deque>
#include <memory>
#include <set>
#include <unordered_map>

namespace troupe {

/// How rows that wait become pieces.
enum class row_use : uint8_t {
  whole, // a piece of their own
  cut,   // pieces of any size
  join   // with others of the same key in one piece
};

struct row_group;

/// Rows of a request that wait: [first, first + rows).
struct waiting_rows {
  request_id request = 0;
  int64_t first = 0;
  int64_t rows = 0;
  row_use use = row_use::whole;
  int64_t most = 0; // rows of a piece, if it may be cut; 0: no limit of its own
  std::string key;
  int priority = 0;
  bool came_back = false;     // from a piece that was lost, or failed because of others
  run_time due;               // until when they wait for others to be joined with
  size_t lane = 0;            // see `request_queue`
  row_group* group = nullptr; // the queue's own
};

/// Returns whether `a` starts before `b`.
struct starts_before {
  bool operator()(const waiting_rows* a, const waiting_rows* b) const;
};
struct is_older {
  bool operator()(const waiting_rows* a, const waiting_rows* b) const;
};
struct is_due_before {
  bool operator()(const waiting_rows* a, const waiting_rows* b) const;
};

/// The queue's own: rows of a lane that are ready together.
struct row_group {
  size_t lane = 0;
  std::string key;
  bool joins = false;
  bool is_ready = false;
  int64_t rows = 0;
  std::set<waiting_rows*, starts_before> members;
  std::set<waiting_rows*, is_due_before> by_due; // if it joins
};

class request_queue {
public:
  static constexpr size_t shared = 0; // the lane of what any replica may run
  static size_t lane_of(size_t replica) { return replica + 1; }

  /// `max_batch`: how many rows fill a group.
  explicit request_queue(int64_t max_batch) : max_batch_(max_batch) {}
  request_queue(const request_queue&) = delete;
  request_queue& operator=(const request_queue&) = delete;

  /// Time passes: groups become ready.
  void advance(run_time now);
  /// Returns when `advance` would change something; nullopt if never.
  std::optional<run_time> next_due() const;

  void add(const waiting_rows& rows);
  /// Takes the first `rows` of those that wait; if that is all of them, `from` is gone.
  void take(const waiting_rows& from, int64_t rows);
  /// Removes all that waits of a request, if anything does.
  void remove(request_id request);
  /// Empties a lane; returns what was there.
  std::vector<waiting_rows> clear(size_t lane);

  /// Returns what should start next in a lane; null if nothing is ready.
  const waiting_rows* head(size_t lane) const;
  /// Returns what has waited longest; as `head`, if that is not ready yet.
  const waiting_rows* oldest(size_t lane) const;
  /// Returns those that should be joined with `first`, which is among them, up to a full batch.
  std::vector<const waiting_rows*> batch_of(const waiting_rows& first) const;

  /// Returns how many requests have rows that wait.
  size_t requests() const { return parts_.size(); }
  /// Returns how many of them have rows in a lane, ready or not.
  size_t requests(size_t lane) const { return lane < lanes_.size() ? lanes_[lane].by_age.size() : 0; }
  /// Returns how many rows wait in a lane, ready or not.
  int64_t rows(size_t lane) const { return lane < lanes_.size() ? lanes_[lane].rows : 0; }
  /// Returns how many records there are: a measure of the memory.
  size_t records() const;

private:
  struct head_starts_before {
    bool operator()(const row_group* a, const row_group* b) const {
      return starts_before{}(*a->members.begin(), *b->members.begin());
    }
  };
  struct queue_lane {
    row_group single; // that need not be joined; always ready
    std::unordered_map<std::string, std::unique_ptr<row_group>> joined;
    std::set<row_group*, head_starts_before> ready;
    std::set<waiting_rows*, is_older> by_age;
    int64_t rows = 0;
  };
  using owned_rows = std::unique_ptr<waiting_rows>;

  row_group& group_for(const waiting_rows& rows);
  /// Takes a group out of the book before it changes, and back in after that; an empty one is dropped.
  void take_out(row_group& g);
  void put_in(row_group& g);
  /// Takes rows out of their group and lane; their record stays.
  void unlink(waiting_rows& rows);

  const int64_t max_batch_;
  run_time now_;
  std::deque<queue_lane> lanes_;                        // groups are referred to, so they stay where they are
  std::set<std::pair<run_time, row_group*>> not_ready_; // by when they will be
  std::unordered_map<request_id, std::vector<owned_rows>> parts_;
};

} // namespace troupe
