#include "vulkan/kernel_exchange.hpp"

#include <algorithm>

namespace troupe::vulkan {

std::shared_ptr<kernel_exchange> kernel_exchange::of(const hash128& compiler) {
  static std::mutex mutex;
  static auto& all = *new std::map<std::string, std::weak_ptr<kernel_exchange>>; // engines may live in static objects
  const std::lock_guard lock(mutex);
  std::erase_if(all, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<kernel_exchange>& known = all[to_hex(compiler)];
  std::shared_ptr<kernel_exchange> found = known.lock();
  if (!found)
    known = found = std::make_shared<kernel_exchange>();
  return found;
}

std::optional<kernel_exchange::code> kernel_exchange::begin(const pipeline_key& key, bool waits) {
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto [found, is_new] = entries_.try_emplace(key);
    if (is_new || !found->second.compiled.empty())
      return found->second.compiled;
    if (!waits)
      return std::nullopt;
    ended_.wait(lock);
  }
}

kernel_exchange::code kernel_exchange::find(const pipeline_key& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  return found == entries_.end() ? code() : found->second.compiled;
}

void kernel_exchange::add_first_constants(size_t count, std::set<std::vector<uint32_t>>& to) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [key, kernel] : entries_)
    if (!kernel.compiled.empty())
      troupe::vulkan::add_first_constants(key, count, to);
}

void kernel_exchange::end(const pipeline_key& key, code compiled) {
  {
    const std::lock_guard lock(mutex_);
    if (compiled.empty()) {
      entries_.erase(key);
    } else {
      bytes_ += compiled.size();
      entries_[key] = {std::move(compiled), ++numbers_};
    }
    while (bytes_ > max_bytes_) {
      const auto age = [](const auto& e) { return e.second.compiled.empty() ? UINT64_MAX : e.second.number; };
      const auto oldest = std::ranges::min_element(entries_, {}, age);
      bytes_ -= oldest->second.compiled.size();
      entries_.erase(oldest);
    }
  }
  ended_.notify_all();
}

} // namespace troupe::vulkan
