// Work that threads which are awake help with.
#include "base/shared_work.hpp"

#include "support/catch.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

using namespace troupe;

namespace {

/// Threads that help until this ends.
class helping_threads {
public:
  explicit helping_threads(int count) {
    for (int i = 0; i < count; ++i)
      threads_.emplace_back([this] {
        while (!ended_)
          help();
      });
  }
  ~helping_threads() {
    ended_ = true;
    for (std::thread& each : threads_)
      each.join();
  }

private:
  std::atomic<bool> ended_{false};
  std::vector<std::thread> threads_;
};

/// Returns how many of `count` elements were not in exactly one range when `share_work` returned.
int64_t missed(int64_t count, int64_t grain, int woken = 0) {
  std::vector<int> seen(static_cast<size_t>(count));
  share_work(
      count, grain,
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          ++seen[static_cast<size_t>(i)];
      },
      woken);
  return std::count_if(seen.begin(), seen.end(), [](int n) { return n != 1; });
}

} // namespace

namespace {

/// Counts those that have ended; says where.
struct ending {
  std::atomic<int>& ended;
  std::atomic<std::thread::id>& where;

  ending(std::atomic<int>& count, std::atomic<std::thread::id>& thread) : ended(count), where(thread) {}
  ending(const ending&) = delete;
  ending& operator=(const ending&) = delete;
  ~ending() {
    where = std::this_thread::get_id();
    ++ended;
  }
};

} // namespace

TEST_CASE("an object that a thread lets go of ends there if no other is awake, else on that one", "[base]") {
  std::atomic<int> ended{0};
  std::atomic<std::thread::id> where;
  const auto let_one_go = [&] { let_go(std::make_shared<ending>(ended, where)); };
  std::this_thread::sleep_for(std::chrono::milliseconds(100)); // earlier tests may have woken threads, for 5
  let_one_go();
  CHECK(ended == 1);
  CHECK(where == std::this_thread::get_id());
  std::atomic<bool> is_awake{false}, sleeps{false};
  std::thread other([&] {
    const awake_thread helping;
    for (is_awake = true; !sleeps;)
      help();
  });
  while (!is_awake)
    std::this_thread::yield();
  let_one_go();
  while (ended < 2)
    std::this_thread::yield();
  CHECK(where == other.get_id());
  sleeps = true;
  other.join();
  let_one_go();
  CHECK(ended == 3);
}

TEST_CASE("nothing that was let go of stays when no thread is awake any more", "[base]") {
  constexpr int threads = 4, each = 20'000;
  std::atomic<int> ended{0};
  std::atomic<std::thread::id> where;
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t)
    running.emplace_back([&] {
      for (int i = 0; i < each; ++i) {
        const awake_thread helping; // falls asleep while others let go
        let_go(std::make_shared<ending>(ended, where));
      }
    });
  for (std::thread& thread : running)
    thread.join();
  CHECK(ended == threads * each);
}

TEST_CASE("shared ranges cover everything once, with helpers and without", "[base]") {
  for (const int helpers : {0, 1, 3}) {
    const helping_threads others(helpers);
    for (const int64_t count : {0, 1, 7, 8, 1000, 4097})
      for (int i = 0; i < 50; ++i)
        CHECK(missed(count, 8) == 0);
  }
}

TEST_CASE("helpers take ranges", "[base]") {
  const helping_threads other(1);
  std::atomic<int> arrived{0};
  // Each of two ranges waits for the other: one thread alone would never end.
  share_work(2, 1, [&](int64_t, int64_t) {
    ++arrived;
    while (arrived < 2)
      std::this_thread::yield();
  });
  CHECK(arrived == 2);
}

TEST_CASE("threads that sleep are woken to help", "[base]") {
  for (int i = 0; i < 20; ++i) {
    std::atomic<int> arrived{0};
    // As above, but all threads sleep.
    share_work(
        2, 1,
        [&](int64_t, int64_t) {
          ++arrived;
          while (arrived < 2)
            std::this_thread::yield();
        },
        1);
    CHECK(arrived == 2);
    if (i % 4 == 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(10)); // long enough for it to sleep again
  }
}

TEST_CASE("several threads that share at the same time all get their work done", "[base]") {
  const helping_threads others(1);
  std::atomic<int64_t> wrong{0};
  std::vector<std::thread> sharing;
  for (int t = 0; t < 12; ++t) // more than may share at once
    sharing.emplace_back([&, t] {
      for (int i = 0; i < 300; ++i)
        wrong += missed(1003, 16, t % 3);
    });
  for (std::thread& each : sharing)
    each.join();
  CHECK(wrong == 0);
}
