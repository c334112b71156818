// What a session's process offers to its workers: values, encoded plans, and the weights that plans name. It also has
// the maker of tensors for values that come from workers. There is one outbox for all links, so a plan is encoded once,
// however many workers run parts of it.
#pragma once

#include "plan/plan.hpp"
#include "remote/weight_routes.hpp"
#include "tensor/tensor_maker.hpp"

#include <future>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

namespace troupe::remote {

/// A plan that workers may pull.
struct offered_plan {
  uint64_t id = 0;
  sent_blob encoded;
  std::shared_ptr<const std::unordered_set<hash128>> leaves; // the weights that it names
};

/// See the top of this file. Thread-safe.
class outbox {
public:
  explicit outbox(tensor_maker maker = make_plain_tensor) : maker_(std::move(maker)) {}

  const tensor_maker& maker() const { return maker_; }
  piece_source& offers() { return offers_; }
  /// Who gives the weights of offered plans to whom.
  weight_routes& routes() { return routes_; }

  /// Encodes a plan if no worker has been offered it yet: all its weights are read, and only who offers the same plan
  /// waits for that. Its encoding and weights stay on offer as long as the plan lives.
  offered_plan offer(const std::shared_ptr<const plan>& p);

private:
  struct entry {
    std::weak_ptr<const plan> of;
    std::shared_future<offered_plan> offered; // set before the plan can be gone
  };

  offered_plan encode(const plan& p, uint64_t id);
  hash128 content_of(const weight& leaf);
  std::vector<entry> take_dead();
  void withdraw(const offered_plan& gone);

  const tensor_maker maker_;
  piece_source offers_;
  weight_routes routes_;
  std::mutex mutex_; // guards the rest; never held while weights are read
  uint64_t last_ = 0;
  std::unordered_map<const plan*, entry> plans_;
  std::unordered_map<hash128, hash128> contents_; // by key of a leaf
};

} // namespace troupe::remote
