#include "base/shared_work.hpp"

#include <algorithm>
#include <atomic>

namespace troupe {
namespace {

struct shared_ranges {
  const int64_t count, grain;
  const std::function<void(int64_t, int64_t)>& body;
  std::atomic<int64_t> next{0};

  void take() {
    for (int64_t begin; (begin = next.fetch_add(grain, std::memory_order_relaxed)) < count;)
      body(begin, std::min(begin + grain, count));
  }
};

// Whoever has seen `open` is counted in `helpers` until it is done with it: helpers count themselves first, and whoever shares closes first, then
// waits for them. Both in the one order that all threads agree on.
std::atomic<bool> taken{false};
std::atomic<shared_ranges*> open{nullptr};
std::atomic<int> helpers{0};

} // namespace

void share_work(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) {
  if (count <= grain || taken.exchange(true, std::memory_order_acquire)) {
    if (count > 0)
      body(0, count);
    return;
  }
  shared_ranges ranges{count, grain, body};
  open.store(&ranges);
  ranges.take();
  open.store(nullptr);
  while (helpers.load() != 0)
    __builtin_ia32_pause();
  taken.store(false, std::memory_order_release);
}

void help() noexcept {
  if (!open.load(std::memory_order_relaxed))
    return;
  ++helpers;
  if (shared_ranges* ranges = open.load())
    ranges->take();
  --helpers;
}

} // namespace troupe
