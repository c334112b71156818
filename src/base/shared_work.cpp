#include "base/shared_work.hpp"

#include "base/cpu_relax.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <limits>
#include <mutex>
#include <new>
#include <omp.h>
#include <thread>
#include <utility>

namespace troupe {
namespace {

struct shared_ranges {
  const int64_t count, grain;
  const std::function<void(int64_t, int64_t)>& body;
  /// A range is this part of what is left, and `grain` at least: the last ones are short, so that no thread waits long
  /// for another's (guided self-scheduling, Polychronopoulos and Kuck 1987). 0: all are `grain`.
  const int64_t part = 0;
  std::atomic<int64_t> next{0};

  void take(const std::function<void()>& between = {}) {
    for (int64_t begin = next.load(std::memory_order_relaxed); begin < count;) {
      const int64_t size = part > 0 ? std::max(grain, (count - begin) / part) : grain;
      if (!next.compare_exchange_weak(begin, begin + size, std::memory_order_relaxed))
        continue;
      body(begin, std::min(begin + size, count));
      if (between)
        between();
      begin = next.load(std::memory_order_relaxed);
    }
  }
};

/// Waits in short steps for another thread, first awake, then leaving the core to it: it may have none.
class short_wait {
public:
  void step() noexcept {
    constexpr int awake_steps = 500; // about 20 µs
    if (steps_ < awake_steps) {
      ++steps_;
      cpu_relax();
    } else {
      std::this_thread::yield();
    }
  }

private:
  int steps_ = 0;
};

/// Where one thread shares. A thread that has seen `open` is counted in `helpers` until it is done: helpers count
/// themselves first, and the thread that shares closes first, then waits for them. Both in the one order that all
/// threads agree on.
struct alignas(64) place_to_share {
  std::atomic<bool> taken{false};
  std::atomic<shared_ranges*> open{nullptr};
  std::atomic<int> helpers{0};
  std::atomic<int> seats{0}; // for helpers

  bool take() { return !taken.load(std::memory_order_relaxed) && !taken.exchange(true, std::memory_order_acquire); }

  void close() {
    open.store(nullptr);
    for (short_wait wait; helpers.load() != 0;)
      wait.step();
    taken.store(false, std::memory_order_release);
  }

  /// Returns whether there was a seat at an open place.
  bool help() noexcept {
    if (!open.load(std::memory_order_relaxed) || !take_seat())
      return false;
    shared_ranges* const ranges = open.load();
    if (ranges)
      ranges->take();
    --helpers;
    return ranges != nullptr;
  }

private:
  /// Many threads that find no seat only read.
  bool take_seat() noexcept {
    int taken_seats = helpers.load();
    while (taken_seats < seats)
      if (helpers.compare_exchange_weak(taken_seats, taken_seats + 1))
        return true;
    return false;
  }
};

using places_to_share = std::array<place_to_share, 8>;
places_to_share places; // for all threads that help
places_to_share loops;  // for those that do nothing else

place_to_share* free_place(places_to_share& all) {
  const auto place = std::find_if(all.begin(), all.end(), [](auto& each) { return each.take(); });
  return place == all.end() ? nullptr : place;
}

/// As long as it lives, ranges are open at a place. If it ends before they do, the rest is left out.
class opened {
public:
  opened(place_to_share& place, shared_ranges& ranges, int seats) : place_(place), ranges_(ranges) {
    place_.seats = seats;
    place_.open.store(&ranges_);
  }
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

bool help_with_loops() noexcept {
  bool helped = false;
  for (place_to_share& each : loops)
    helped |= each.help();
  return helped;
}

/// Threads that sleep until they are woken. They end with the process: nothing joins them, which a child of a fork
/// could not.
class helping_threads {
public:
  /// Wakes all, after making those that are missing to `count`.
  void wake(size_t count) {
    if (made_ < count) {
      const std::scoped_lock lock(growing_);
      for (; made_ < count; ++made_)
        std::thread([this, seen = calls_.load()] { run(seen); }).detach();
    }
    ++calls_;
    calls_.notify_all();
  }

  /// The same for a loop, which is open already: a thread that is awake sees it.
  void wake_for_loop(size_t count) {
    if (awake_ < count)
      wake(count);
  }

  unsigned cores() const { return cores_; }

private:
  [[noreturn]] void run(uint32_t seen) {
    omp_set_num_threads(1); // what a range calls may not start a team of its own
    for (;;) {
      calls_.wait(seen);
      do
        look(seen);
      while (help_with_loops()); // one that was opened when this thread still counted as awake
    }
  }

  /// Helps until there has been no call and no loop for a while.
  void look(uint32_t& seen) {
    using std::chrono::steady_clock;
    constexpr unsigned many_cores = 8; // fewer are wanted by others
    constexpr auto after_loop = std::chrono::microseconds(100);
    const auto after_call = cores_ >= many_cores ? std::chrono::milliseconds(5) : after_loop;
    const awake_thread helping;
    ++awake_;
    steady_clock::time_point until;
    short_wait wait;
    do {
      if (help_with_loops()) {
        until = std::max(until, steady_clock::now() + after_loop);
        wait = {};
      }
      if (const uint32_t now = calls_; now != seen) {
        seen = now;
        until = steady_clock::now() + after_call;
        wait = {};
      }
      help();
      wait.step();
    } while (steady_clock::now() < until);
    --awake_;
  }

  const unsigned cores_ = std::max(std::thread::hardware_concurrency(), 2u);
  std::mutex growing_;
  std::atomic<size_t> made_{0}, awake_{0};
  std::atomic<uint32_t> calls_{0};
};

helping_threads& helpers() {
  static helping_threads& all = *new helping_threads; // outlives whatever ends before its threads do
  return all;
}

void wake_helpers(int for_each_place) {
  const auto sharing =
      std::count_if(places.begin(), places.end(), [](const auto& each) { return each.open.load() != nullptr; });
  helpers().wake(std::min(static_cast<size_t>(sharing * for_each_place), size_t{helpers().cores() / 2}));
}

} // namespace

void share_work(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body, int woken,
                const std::function<void()>& between) {
  shared_ranges ranges{count, grain, body};
  place_to_share* const place = count > grain ? free_place(places) : nullptr;
  if (!place) {
    ranges.take(between);
    return;
  }
  const opened to_others(*place, ranges, std::numeric_limits<int>::max());
  if (woken > 0)
    wake_helpers(woken);
  ranges.take(between);
}

void share_loop(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body, int helpers_wanted) {
  shared_ranges ranges{count, grain, body, 2 * (int64_t{helpers_wanted} + 1)};
  place_to_share* const place = count > grain && helpers_wanted > 0 ? free_place(loops) : nullptr;
  if (!place) {
    ranges.take();
    return;
  }
  const opened to_others(*place, ranges, helpers_wanted);
  helpers().wake_for_loop(static_cast<size_t>(helpers_wanted));
  ranges.take();
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
