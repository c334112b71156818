// A small cache that forgets what was used longest ago. For plans and bound plans, by content key.
//
// Thread-safety: none; its owner calls it from one thread at a time.
#pragma once

#include "base/error.hpp"
#include "base/hash.hpp"
#include "troupe/results.hpp"

#include <list>
#include <unordered_map>

namespace troupe {

inline cache_stats& operator+=(cache_stats& sum, const cache_stats& more) {
  sum.hits += more.hits;
  sum.misses += more.misses;
  sum.evictions += more.evictions;
  return sum;
}
/// Returns what has been counted since `before`.
inline cache_stats operator-(const cache_stats& now, const cache_stats& before) {
  return {now.hits - before.hits, now.misses - before.misses, now.evictions - before.evictions};
}

/// Maps keys to values, at most `capacity` (≥ 1) of them (see the top of this file).
template <class Value>
class plan_cache {
public:
  explicit plan_cache(size_t capacity) : capacity_(capacity) {
    expects(capacity > 0, "plan_cache: a cache holds at least one entry");
  }

  /// Returns the value and marks it as used now; null if there is none. The pointer is valid until the next `insert`.
  Value* find(const hash128& key) {
    const auto it = index_.find(key);
    if (it == index_.end())
      return nullptr;
    entries_.splice(entries_.begin(), entries_, it->second);
    return &it->second->second;
  }

  /// Adds or replaces an entry and calls `evicted(value)` for each value that has to go.
  template <class F>
  Value& insert(const hash128& key, Value value, F&& evicted) {
    if (const auto it = index_.find(key); it != index_.end()) {
      evicted(it->second->second);
      entries_.erase(it->second);
      index_.erase(it);
    }
    entries_.emplace_front(key, std::move(value));
    index_[key] = entries_.begin();
    while (entries_.size() > capacity_) {
      ++evictions_;
      evicted(entries_.back().second);
      index_.erase(entries_.back().first);
      entries_.pop_back();
    }
    return entries_.front().second;
  }
  Value& insert(const hash128& key, Value value) {
    return insert(key, std::move(value), [](Value&) {});
  }

  /// Calls `visit(value)` for every entry.
  template <class F>
  void for_each(F&& visit) {
    for (auto& [key, value] : entries_)
      visit(value);
  }

  /// Removes the entries for which `unwanted(value)` holds, without counting evictions.
  template <class F>
  void erase_if(F&& unwanted) {
    std::erase_if(entries_, [&](const auto& entry) {
      if (!unwanted(entry.second))
        return false;
      index_.erase(entry.first);
      return true;
    });
  }

  size_t size() const { return entries_.size(); }
  /// Returns how many entries had to go for others, since the cache was made.
  uint64_t evictions() const { return evictions_; }

private:
  using entry_list = std::list<std::pair<hash128, Value>>; // used last first

  size_t capacity_;
  entry_list entries_;
  std::unordered_map<hash128, typename entry_list::iterator> index_;
  uint64_t evictions_ = 0;
};

} // namespace troupe
