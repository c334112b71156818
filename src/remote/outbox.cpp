#include "remote/outbox.hpp"

#include "remote/plan_limit.hpp"
#include "remote/values.hpp"
#include "wire/plans.hpp"

#include <algorithm>

namespace troupe::remote {

offered_plan outbox::offer(const std::shared_ptr<const plan>& p) {
  const std::lock_guard lock(mutex_);
  const std::vector<entry> dead = take_dead();
  offered_plan offered;
  const failure why = capture([&] { offered = add(p); });
  for (const entry& e : dead) // now: it stays known which workers have the weights that the new plan has, too
    withdraw(e);
  if (why.failed())
    fail(why.code, "{}", why.message);
  return offered;
}

offered_plan outbox::add(const std::shared_ptr<const plan>& p) {
  const auto [found, is_new] = plans_.try_emplace(p.get());
  entry& e = found->second;
  if (!is_new)
    return e.offered;
  try {
    check_texts(*p->program);
    const auto bytes = std::make_shared<const std::vector<uint8_t>>(
        wire::encode_plan(*p, [&](const weight& leaf) { return content_of(leaf, e); }));
    const tensor blob(dtype::uint8, {static_cast<int64_t>(bytes->size())}, bytes, bytes->data());
    e.of = p;
    e.offered = {++last_, {new_key(), blob.bytes()}};
    offers_.offer(e.offered.encoded.key, blob);
  } catch (...) {
    withdraw(e);
    plans_.erase(found);
    throw;
  }
  return e.offered;
}

hash128 outbox::content_of(const weight& leaf, entry& e) {
  const auto [found, is_new] = contents_.try_emplace(leaf.key);
  if (is_new)
    found->second = content_hash(leaf.leaf);
  offers_.offer(found->second, to_blob(leaf.leaf));
  routes_.open(found->second);
  e.leaves.push_back(found->second);
  return found->second;
}

tensor outbox::weight_of(const std::vector<std::shared_ptr<const plan>>& plans, const hash128& content) const {
  const std::lock_guard lock(mutex_);
  const bool is_named = std::ranges::any_of(plans, [&](const auto& p) {
    const auto found = plans_.find(p.get());
    return found != plans_.end() && std::ranges::count(found->second.leaves, content) > 0;
  });
  return is_named ? offers_.find(content) : tensor();
}

void outbox::withdraw(const entry& e) {
  offers_.withdraw(e.offered.encoded.key);
  for (const hash128& content : e.leaves) {
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
