// What a session's process offers to its workers: values, encoded plans, and the weights that these name; and who makes the memory of what
// comes from them. One for all links, so that a plan is encoded once however many workers run parts of it.
#pragma once

#include "plan/plan.hpp"
#include "remote/weight_routes.hpp"
#include "tensor/tensor_maker.hpp"

#include <map>
#include <mutex>
#include <unordered_map>

namespace troupe::remote {

/// A plan that workers may pull.
struct offered_plan {
  uint64_t id = 0;
  sent_blob encoded;
};

/// See the top of this file. Thread-safe.
class outbox {
public:
  explicit outbox(tensor_maker maker = make_plain_tensor) : maker_(std::move(maker)) {}

  const tensor_maker& maker() const { return maker_; }
  piece_source& offers() { return offers_; }
  /// Who gives the weights of offered plans to whom.
  weight_routes& routes() { return routes_; }

  /// Encodes a plan if no worker has been offered it yet. Its encoding and weights stay on offer as long as the plan lives.
  offered_plan offer(const std::shared_ptr<const plan>& p);

  /// Returns the bytes of a weight that one of these plans names, while it is on offer; else undefined.
  tensor weight_of(const std::vector<std::shared_ptr<const plan>>& plans, const hash128& content) const;

private:
  struct entry {
    std::weak_ptr<const plan> of;
    offered_plan offered;
    std::vector<hash128> leaves; // on offer
  };

  offered_plan add(const std::shared_ptr<const plan>& p);
  hash128 content_of(const weight& leaf, entry& e);
  std::vector<entry> take_dead();
  void withdraw(const entry& e);

  const tensor_maker maker_;
  piece_source offers_;
  weight_routes routes_;
  mutable std::mutex mutex_;
  uint64_t last_ = 0;
  std::unordered_map<const plan*, entry> plans_;
  std::unordered_map<hash128, hash128> contents_; // by key of a leaf
};

} // namespace troupe::remote
