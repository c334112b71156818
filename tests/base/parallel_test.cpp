// Work and copies that several threads share.
#include "base/parallel.hpp"

#include "support/catch.hpp"

#include <algorithm>
#include <atomic>
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

TEST_CASE("a copy ends with what its caller throws, and the next one copies everything", "[base]") {
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
