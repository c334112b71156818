#include "remote/outbox.hpp"

#include "remote/values.hpp"
#include "wire/plans.hpp"

namespace troupe::remote {

offered_plan outbox::offer(const std::shared_ptr<const plan>& p) {
  const std::lock_guard lock(mutex_);
  withdraw_dead();
  const auto [found, is_new] = plans_.try_emplace(p.get());
  entry& e = found->second;
  if (!is_new)
    return e.offered;
  try {
    const std::vector<uint8_t> bytes = wire::encode_plan(*p, [&](const weight& leaf) { return content_of(leaf, e); });
    tensor blob(dtype::uint8, {static_cast<int64_t>(bytes.size())});
    std::copy(bytes.begin(), bytes.end(), blob.mutable_data<uint8_t>());
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
  if (leaves_[found->second]++ == 0)
    offers_.offer(found->second, to_blob(leaf.leaf));
  e.leaves.push_back(found->second);
  return found->second;
}

void outbox::withdraw(const entry& e) {
  offers_.withdraw(e.offered.encoded.key);
  for (const hash128& content : e.leaves)
    if (--leaves_[content] == 0) {
      leaves_.erase(content);
      offers_.withdraw(content);
    }
}

void outbox::withdraw_dead() {
  std::erase_if(plans_, [&](const auto& item) {
    const bool dead = item.second.of.expired();
    if (dead)
      withdraw(item.second);
    return dead;
  });
}

} // namespace troupe::remote
