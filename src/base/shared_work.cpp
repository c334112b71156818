#include "base/shared_work.hpp"

#include "base/cpu_relax.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

namespace troupe {
namespace {

struct shared_ranges {
  const int64_t count, grain;
  const std::function<void(int64_t, int64_t)>& body;
  std::atomic<int64_t> next{0};

  void take(const std::function<void()>& between = {}) {
    for (int64_t begin; (begin = next.fetch_add(grain, std::memory_order_relaxed)) < count;) {
      body(begin, std::min(begin + grain, count));
      if (between)
        between();
    }
  }
};

/// Where one thread shares. A thread that has seen `open` is counted in `helpers` until it is done: helpers count
/// themselves first, and the thread that shares closes first, then waits for them. Both in the one order that all
/// threads agree on.
struct alignas(64) place_to_share {
  std::atomic<bool> taken{false};
  std::atomic<shared_ranges*> open{nullptr};
  std::atomic<int> helpers{0};

  bool take() { return !taken.load(std::memory_order_relaxed) && !taken.exchange(true, std::memory_order_acquire); }

  void close() {
    open.store(nullptr);
    while (helpers.load() != 0)
      cpu_relax();
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
};

std::array<place_to_share, 8> places;

/// As long as it lives, ranges are open at a place. If it ends before they do, the rest is left out.
class opened {
public:
  opened(place_to_share& place, shared_ranges& ranges) : place_(place), ranges_(ranges) { place_.open.store(&ranges_); }
  ~opened() {
    ranges_.next = ranges_.count;
    place_.close();
  }
  opened(const opened&) = delete;
  opened& operator=(const opened&) = delete;

private:
  place_to_share& place_;
  shared_ranges& ranges_;
};

/// What threads let go of, one after the other. A thread that leaves something looks afterwards whether any is awake; a
/// thread that is no longer awake takes afterwards what is there. All threads agree on one order of these steps, so
/// nothing stays.
class left_for_others {
public:
  void add(std::shared_ptr<const void>& last) noexcept {
    if (awake == 0)
      return;
    auto* const holder = new (std::nothrow) std::shared_ptr<const void>(std::move(last));
    delete left_.exchange(holder);
    if (awake == 0)
      end();
  }
  void end() noexcept {
    if (left_.load())
      delete left_.exchange(nullptr);
  }

  std::atomic<int> awake{0}; // threads

private:
  std::atomic<std::shared_ptr<const void>*> left_{nullptr};
};

left_for_others left;

/// Threads that sleep until they are woken. They end with the process: nothing joins them, which a child of a fork
/// could not.
class helping_threads {
public:
  /// Wakes all, after making those that are missing to `count`.
  void wake(size_t count) {
    {
      const std::scoped_lock lock(growing_);
      for (; made_ < std::min<size_t>(count, cores_ / 2); ++made_)
        std::thread([this, seen = calls_.load()] { run(seen); }).detach();
    }
    ++calls_;
    calls_.notify_all();
  }

private:
  [[noreturn]] void run(uint32_t seen) {
    for (;; look(seen))
      calls_.wait(seen);
  }

  /// Helps until there has been no call for a while.
  void look(uint32_t& seen) {
    constexpr unsigned many_cores = 8; // fewer are wanted by others
    const auto awake = std::chrono::milliseconds(cores_ >= many_cores ? 5 : 0);
    std::chrono::steady_clock::time_point until;
    const awake_thread helping;
    do {
      if (const uint32_t now = calls_; now != seen) {
        seen = now;
        until = std::chrono::steady_clock::now() + awake;
      }
      help();
      cpu_relax();
    } while (std::chrono::steady_clock::now() < until);
  }

  const unsigned cores_ = std::max(std::thread::hardware_concurrency(), 2u);
  std::mutex growing_;
  size_t made_ = 0;
  std::atomic<uint32_t> calls_{0};
};

void wake_helpers(int for_each_place) {
  static helping_threads& all = *new helping_threads; // outlives whatever ends before its threads do
  const auto sharing =
      std::count_if(places.begin(), places.end(), [](const auto& each) { return each.open.load() != nullptr; });
  all.wake(static_cast<size_t>(sharing * for_each_place));
}

} // namespace

void share_work(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body, int woken,
                const std::function<void()>& between) {
  shared_ranges ranges{count, grain, body};
  const auto place =
      count > grain ? std::find_if(places.begin(), places.end(), [](auto& each) { return each.take(); }) : places.end();
  if (place == places.end()) {
    ranges.take(between);
    return;
  }
  const opened to_others(*place, ranges);
  if (woken > 0)
    wake_helpers(woken);
  ranges.take(between);
}

void let_go(std::shared_ptr<const void> last) noexcept {
  left.add(last);
}

bool has_spare_cores() noexcept {
  constexpr unsigned enough = 8; // few have other work
  static const unsigned cores = std::thread::hardware_concurrency();
  return cores >= enough;
}

void help() noexcept {
  for (place_to_share& each : places)
    each.help();
  left.end();
}

awake_thread::awake_thread() noexcept {
  ++left.awake;
}

awake_thread::~awake_thread() {
  --left.awake;
  left.end();
}

} // namespace troupe
