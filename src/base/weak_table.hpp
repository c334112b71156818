// Shared objects by key, which the table itself does not keep alive.
//
// Entries of objects that are gone leave when the table is full, which is at twice as many as were alive the last time:
// so adding takes constant time on average, and the table holds at most twice the most that ever were alive at once.
// Used by one thread at a time.
#pragma once

#include <algorithm>
#include <memory>
#include <unordered_map>

namespace troupe {

template <class Key, class T, class Hash = std::hash<Key>>
class weak_table {
public:
  /// Returns the object of that key, null if there is none or it is gone.
  std::shared_ptr<T> find(const Key& key) const {
    const auto it = entries_.find(key);
    return it == entries_.end() ? nullptr : it->second.lock();
  }

  /// Notes an object, in the place of the one that had its key.
  void add(Key key, const std::shared_ptr<T>& object) {
    if (entries_.size() >= room_) {
      std::erase_if(entries_, [](const auto& entry) { return entry.second.expired(); });
      room_ = std::max(smallest_room, 2 * entries_.size());
    }
    entries_.insert_or_assign(std::move(key), object);
  }

  /// Calls `f` with each object that is alive.
  template <class F>
  void for_each(F&& f) const {
    for (const auto& [key, weak] : entries_)
      if (const std::shared_ptr<T> object = weak.lock())
        f(*object);
  }

  /// Returns how many entries there are, those of objects that are gone included.
  size_t size() const { return entries_.size(); }

private:
  static constexpr size_t smallest_room = 64;

  std::unordered_map<Key, std::weak_ptr<T>, Hash> entries_;
  size_t room_ = smallest_room;
};

} // namespace troupe
