// Where the workers of a session's process get weights from: each weight leaves the process once, as far as workers can
// pass it on.
//
// A worker that lacks a weight asks (`want_weight`) and is told a source: this process, or a worker that has the
// weight. A worker gives a weight to one other at a time, and this process only to the first that asks, so a weight
// spreads like a tree; a worker that asks meanwhile waits for an answer. It waits for a transfer that is going on. Each
// transfer ends when its receiver says so or leaves, so no worker waits for ever. A worker whose source has failed gets
// the weight from this process, and is not told that source again unless the source merely had the weight no more.
#pragma once

#include "remote/messages.hpp"

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <unordered_map>

namespace troupe::remote {

/// See the top of this file. Thread-safe; no worker is told anything under the lock.
class weight_routes {
public:
  using worker_id = uint64_t;
  /// Tells a worker; does not block.
  using teller = std::function<void(const weight_source&)>;

  /// `address`: HOST:PORT, for other workers.
  worker_id join(std::string address, teller tell);
  /// Does nothing for a worker that has left.
  void leave(worker_id w);

  /// This process offers a weight until it is closed as often as it was opened. What workers say of others is ignored,
  /// their wishes sent here.
  void open(const hash128& content);
  void close(const hash128& content);

  // -- what workers say
  void want(worker_id w, const want_weight& wish);
  void have(worker_id w, const have_weights& those);
  void give_up(worker_id w, const hash128& content);

private:
  /// As the source of a transfer.
  static constexpr worker_id this_process = 0;

  struct worker {
    std::string address;
    teller tell;
    std::set<worker_id> avoided; // sources that were useless to it
  };
  struct weight_state {
    size_t opened = 0;
    std::map<worker_id, hash128> keys;        // by worker that has it
    std::map<worker_id, worker_id> transfers; // sources, by receiver
    std::vector<worker_id> waiting;           // the first that asked first
  };
  using answers = std::vector<std::pair<teller, weight_source>>;

  void take_fault(weight_state& s, worker_id w, weight_fault fault);
  void route(const hash128& content, weight_state& s, answers& later) const;
  std::optional<worker_id> source_for(const weight_state& s, worker_id w) const;
  void give(const hash128& content, weight_state& s, worker_id from, worker_id to, answers& later) const;

  std::mutex mutex_;
  worker_id last_ = this_process;
  std::map<worker_id, worker> workers_;
  std::unordered_map<hash128, weight_state> weights_; // those that are open
};

} // namespace troupe::remote
