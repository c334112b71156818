#include "remote/told_plans.hpp"

#include <algorithm>

namespace troupe::remote {

offered_plan told_plans::offer(const std::shared_ptr<const plan>& p) {
  offered_plan offered = offers_.offer(p);
  std::vector<uint64_t> dead;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(plans_, [&](const auto& known) {
      if (!known.second.of.expired())
        return false;
      dead.push_back(known.first);
      return true;
    });
    plans_[offered.id] = {p, offered.leaves};
  }
  for (uint64_t id : dead)
    link_->send(encode(forget_plan{id}));
  return offered;
}

void told_plans::prove(prove_weights wanted) {
  std::vector<leaves> offered;
  size_t most = 0;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, known] : plans_)
      if (!known.of.expired()) {
        offered.push_back(known.weights);
        most += known.weights->size();
      }
  }
  // Each weight that is named makes this process read all of it, however short the question is.
  const std::vector<hash128>& asked = wanted.contents;
  if (asked.size() > most || std::unordered_set(asked.begin(), asked.end()).size() < asked.size())
    fail(errc::invalid_input, "proofs of {} weights are wanted, of {} on offer, or of one twice", asked.size(), most);
  if (is_proving_.exchange(true))
    fail(errc::invalid_input, "proofs are wanted before the last ones were given");
  // All bytes of a model are read: not on the link's thread. The thread before this one has sent its answer.
  prover_ = std::jthread([this, offered = std::move(offered), wanted = std::move(wanted)](const std::stop_token& stop) {
    weight_proofs answer{.challenge = wanted.challenge, .proofs = {}};
    const failure why = capture([&] {
      for (auto next = wanted.contents.begin(); next != wanted.contents.end() && !stop.stop_requested(); ++next) {
        const bool is_named = std::ranges::any_of(offered, [&](const auto& leaves) { return leaves->contains(*next); });
        const tensor blob = is_named ? offers_.offers().find(*next) : tensor();
        answer.proofs.push_back(blob.defined() ? content_proof(wanted.challenge, blob) : hash128{});
      }
    });
    answer.proofs.resize(wanted.contents.size()); // what is not proven is sent
    is_proving_ = false;                          // before the host can ask again
    link_->send(encode(answer));
  });
}

} // namespace troupe::remote
