// The plans of one session on a worker: pulled, made again, and given their weights, on a thread of their own, since
// that takes as long as it takes to plan and to load.
#pragma once

#include "remote/weight_loader.hpp"

namespace troupe::remote {

/// See the top of this file.
class plan_shelf {
public:
  /// `puller` brings the plans, `weights` what they name.
  plan_shelf(weight_loader& weights, std::shared_ptr<piece_puller> puller);
  /// Drops the jobs that have not begun and waits for the one in hand, unless that is what calls this.
  ~plan_shelf();

  /// Has `job` done on the shelf's thread, after those before it.
  void enqueue(std::function<void()> job);

  // -- for jobs
  /// Throws `errc::invalid_input` if an order gives a number to a plan, or to a binding of one, that another has which
  /// is still here.
  void check_numbers(const install& order) const;
  /// Returns the bound plan that an order names, the weights of its device there, and adds where they came from to
  /// `loaded`; `told` as in `weight_loader::load`. Throws what can go wrong.
  bound_plan_ptr make(const install& order, loaded_bytes& loaded, const load_told& told);
  void forget(uint64_t plan) { plans_.erase(plan); }

private:
  /// What the thread works on. It may outlive the shelf, if a job lets go of the last handle of the shelf's owner.
  struct job_queue {
    std::mutex mutex;
    std::condition_variable wake;
    std::deque<std::function<void()>> jobs;
    bool closing = false;
  };

  struct shelved_plan {
    shelved_plan(wire::decoded_plan p, const sent_blob& from, piece_source& offers)
        : plan(std::move(p)), encoded(from), offered(offers) {}
    wire::decoded_plan plan;
    sent_blob encoded;      // what it was made of
    offered_leaves offered; // its weights, for other workers
  };

  /// A binding, which all devices share that it is installed on.
  struct shelved_binding {
    std::vector<uint8_t> binding; // what it was made of
    std::weak_ptr<const bound_plan> bound;
  };

  static void work(job_queue& queue);
  shelved_plan& plan_of(const install& order);

  weight_loader& weights_;
  const std::shared_ptr<piece_puller> puller_;
  std::unordered_map<uint64_t, shelved_plan> plans_;    // by the session's number; touched by the thread only
  std::unordered_map<uint64_t, shelved_binding> bound_; // the same
  wire::layout_table layouts_;                          // the same
  const std::shared_ptr<job_queue> queue_ = std::make_shared<job_queue>();
  std::thread thread_;
};

} // namespace troupe::remote
