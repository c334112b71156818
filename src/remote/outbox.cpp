#include "remote/outbox.hpp"

#include "remote/plan_limit.hpp"
#include "remote/values.hpp"
#include "wire/plans.hpp"

namespace troupe::remote {

offered_plan outbox::offer(const std::shared_ptr<const plan>& p) {
  std::promise<offered_plan> promised;
  std::shared_future<offered_plan> offered;
  std::vector<entry> dead;
  uint64_t id = 0; // of a plan that is new
  {
    const std::lock_guard lock(mutex_);
    dead = take_dead();
    const auto [found, is_new] = plans_.try_emplace(p.get());
    if (is_new) {
      found->second = {p, promised.get_future().share()};
      id = ++last_;
    }
    offered = found->second.offered;
  }
  if (id != 0)
    try {
      promised.set_value(encode(*p, id));
    } catch (...) {
      const std::lock_guard lock(mutex_);
      plans_.erase(p.get()); // first: the next offer of the plan begins anew
      promised.set_exception(std::current_exception());
    }
  for (const entry& e : dead) // now: it stays known which workers have the weights that the new plan has, too
    withdraw(e.offered.get());
  return offered.get();
}

offered_plan outbox::encode(const plan& p, uint64_t id) {
  check_strings(*p.program);
  const auto leaves = std::make_shared<std::unordered_set<hash128>>();
  offered_plan made{.id = id, .encoded = {new_key(), 0}, .leaves = leaves};
  try {
    const auto bytes = std::make_shared<const std::vector<uint8_t>>(wire::encode_plan(p, [&](const weight& leaf) {
      const hash128 content = content_of(leaf);
      if (leaves->insert(content).second) {
        offers_.offer(content, to_blob(leaf.leaf));
        routes_.open(content);
      }
      return content;
    }));
    const tensor blob(dtype::uint8, {static_cast<int64_t>(bytes->size())}, bytes, bytes->data());
    made.encoded.size = blob.bytes();
    offers_.offer(made.encoded.key, blob);
  } catch (...) {
    withdraw(made);
    throw;
  }
  return made;
}

hash128 outbox::content_of(const weight& leaf) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = contents_.find(leaf.key); known != contents_.end())
      return known->second;
  }
  const hash128 content = content_hash(leaf.leaf); // takes seconds for a large one
  const std::lock_guard lock(mutex_);
  return contents_.try_emplace(leaf.key, content).first->second;
}

void outbox::withdraw(const offered_plan& gone) {
  offers_.withdraw(gone.encoded.key);
  for (const hash128& content : *gone.leaves) {
    offers_.withdraw(content);
    routes_.close(content);
  }
}

std::vector<outbox::entry> outbox::take_dead() {
  std::vector<entry> dead;
  std::erase_if(plans_, [&](auto& item) {
    const bool is_dead = item.second.of.expired();
    if (is_dead)
      dead.push_back(std::move(item.second));
    return is_dead;
  });
  return dead;
}

} // namespace troupe::remote
