#include "compat/onnxruntime/handles.hpp"

#include <array>
#include <cstdio>
#include <mutex>
#include <unordered_map>

namespace troupe::ort {
namespace {

/// A part of the living handles: threads that make values side by side seldom wait for each other.
struct shard {
  std::mutex mutex;
  std::unordered_map<const void*, const std::type_info*> living;
};

/// It is never destroyed: a client may release its handles when the process ends.
shard& shard_of(const void* handle) {
  constexpr size_t count = 64, granularity = 64;
  static auto& shards = *new std::array<shard, count>;
  return shards[reinterpret_cast<size_t>(handle) / granularity % count];
}

} // namespace

void add_handle(const void* handle, const std::type_info& type) {
  shard& s = shard_of(handle);
  const std::lock_guard lock(s.mutex);
  s.living[handle] = &type;
}

bool has_handle(const void* handle, const std::type_info& type) {
  shard& s = shard_of(handle);
  const std::lock_guard lock(s.mutex);
  const auto found = s.living.find(handle);
  return found != s.living.end() && *found->second == type;
}

bool remove_handle(const void* handle, const std::type_info& type, const char* function) noexcept {
  shard& s = shard_of(handle);
  const std::lock_guard lock(s.mutex);
  const auto found = s.living.find(handle);
  if (found == s.living.end() || *found->second != type) {
    std::fprintf(stderr, "troupe: %s: %p is not a living handle of this kind; it is left alone\n", function, handle);
    return false;
  }
  s.living.erase(found);
  return true;
}

} // namespace troupe::ort
