// Work and copies that several threads share.
#include "base/parallel.hpp"
#include "base/usable_cores.hpp"

#include "support/catch.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <sched.h>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace troupe;

TEST_CASE("parallel ranges cover everything once, and their first exception comes back", "[base]") {
  for (const int64_t count : {0, 1, 7, 1000}) {
    std::vector<std::atomic<int>> seen(static_cast<size_t>(count));
    parallel_for(count, 3, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        ++seen[static_cast<size_t>(i)];
    });
    CHECK(std::all_of(seen.begin(), seen.end(), [](const auto& n) { return n == 1; }));
  }
  CHECK_THROWS_AS(parallel_for(100, 1, [](int64_t, int64_t) { throw std::runtime_error("no"); }), std::runtime_error);
}

TEST_CASE("a loop has as many threads as the limit says, and one inside of it", "[base]") {
  for (const int most : {4, 3, 2, 1}) { // threads that helped before are awake
    const thread_limit limit(most);
    CHECK(thread_count() == most);
    std::mutex mutex;
    std::set<std::thread::id> seen;
    std::atomic<int> inside{0}, nested{0}, at_once{0}, most_at_once{0};
    for (int loop = 0; loop < 50; ++loop)
      parallel_for(64, 1, [&](int64_t begin, int64_t end) {
        inside = std::max<int>(inside, thread_count());
        const int now = ++at_once;
        for (int before = most_at_once; before < now && !most_at_once.compare_exchange_weak(before, now);)
          ;
        parallel_for(end - begin, 1, [&](int64_t first, int64_t last) { nested += static_cast<int>(last - first); });
        std::this_thread::sleep_for(std::chrono::microseconds(20)); // others come meanwhile
        --at_once;
        const std::scoped_lock lock(mutex);
        seen.insert(std::this_thread::get_id());
      });
    CHECK(inside == 1);
    CHECK(nested == 50 * 64);
    CHECK(most_at_once <= most);
    if (most == 1)
      CHECK(seen == std::set<std::thread::id>{std::this_thread::get_id()});
  }
}

TEST_CASE("a limit of threads ends where its scope does, and an inner one does not raise it", "[base]") {
  const int before = thread_count();
  {
    const thread_limit two(2);
    const thread_limit more(5), unchanged(0);
    CHECK(thread_count() == 2);
  }
  CHECK(thread_count() == before);
}

TEST_CASE("loops of several threads at once cover everything once", "[base]") {
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 12; ++c) // more than there are places
    callers.emplace_back([&wrong] {
      const thread_limit limit(3);
      const auto caller = std::this_thread::get_id();
      for (int loop = 0; loop < 50; ++loop) {
        std::atomic<int64_t> sum{0};
        parallel_for(100, 1, [&](int64_t begin, int64_t end) {
          if (std::this_thread::get_id() != caller)
            std::this_thread::sleep_for(std::chrono::microseconds(200)); // the caller has to wait for it
          for (int64_t i = begin; i < end; ++i)
            sum += i;
        });
        wrong += sum != 4950;
      }
    });
  for (std::thread& each : callers)
    each.join();
  CHECK(wrong == 0);
}

TEST_CASE("the thread that calls a loop does all of it if no other comes", "[base]") {
  // Helpers that sleep in their first range cannot hold up ranges that they have not taken.
  const auto caller = std::this_thread::get_id();
  const thread_limit limit(4);
  std::atomic<int> by_caller{0}, helpers{0};
  parallel_for(400, 1, [&](int64_t begin, int64_t end) {
    if (std::this_thread::get_id() != caller) {
      ++helpers;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      return;
    }
    by_caller += static_cast<int>(end - begin);
  });
  CHECK(helpers <= 3);
  CHECK(by_caller >= 400 - 3 * 400 / 8);
}

TEST_CASE("usable cores are those of the process's affinity", "[base]") {
  cpu_set_t all;
  REQUIRE(sched_getaffinity(0, sizeof(all), &all) == 0);
  CHECK(usable_cores() >= 1);
  CHECK(usable_cores() <= CPU_COUNT(&all));
  int first = 0;
  while (!CPU_ISSET(first, &all))
    ++first;
  std::thread([&] { // of this thread alone
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    REQUIRE(sched_setaffinity(0, sizeof(one), &one) == 0);
    CHECK(usable_cores() == 1);
  })
      .join();
}

TEST_CASE("a copy by several threads copies all bytes and no other", "[base]") {
  for (const int64_t bytes : {0, 1, (1 << 20) - 1, (1 << 20) + 1, 5'000'003}) {
    std::vector<unsigned char> from(static_cast<size_t>(bytes)), to(static_cast<size_t>(bytes) + 2, 0xAB);
    for (size_t i = 0; i < from.size(); ++i)
      from[i] = static_cast<unsigned char>(i * 31 + i / 251);
    parallel_copy(to.data() + 1, from.data(), bytes);
    CHECK(std::equal(from.begin(), from.end(), to.begin() + 1));
    CHECK((to.front() == 0xAB && to.back() == 0xAB));
  }
}

TEST_CASE("a copy says how many bytes it has copied, in order and at last all", "[base]") {
  for (const int64_t bytes : {0, 1, (1 << 17) - 1, 1 << 17, 5'000'003}) {
    std::vector<unsigned char> from(static_cast<size_t>(bytes)), to(static_cast<size_t>(bytes), 0xAB);
    for (size_t i = 0; i < from.size(); ++i)
      from[i] = static_cast<unsigned char>(i % 127); // never 0xAB
    const auto caller = std::this_thread::get_id();
    int64_t before = 0, wrong = 0;
    parallel_copy(to.data(), from.data(), bytes, [&](int64_t n) {
      wrong += n < before || n > bytes || std::this_thread::get_id() != caller ||
               !std::equal(from.begin() + before, from.begin() + n, to.begin() + before);
      before = n;
    });
    CHECK(wrong == 0);
    CHECK(before == bytes);
  }
}

TEST_CASE("a copy ends with the exception of its caller, and the next one copies everything", "[base]") {
  std::vector<unsigned char> from(5'000'003, 7), to(from.size());
  const auto copy = [&](int64_t fails_at) {
    parallel_copy(to.data(), from.data(), static_cast<int64_t>(from.size()), [&](int64_t n) {
      if (n >= fails_at)
        throw std::runtime_error("no");
    });
  };
  for (const int64_t fails_at : {0, 1, 2'000'000, 5'000'003})
    CHECK_THROWS_AS(copy(fails_at), std::runtime_error);
  copy(5'000'004);
  CHECK(to == from);
}
