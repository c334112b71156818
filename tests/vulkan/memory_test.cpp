#include "support/catch.hpp"
#include "support/gpu.hpp"
#include "support/vulkan_faults.hpp"
#include "vulkan/memory.hpp"
#include "vulkan/timeline.hpp"

#include <random>

using namespace troupe;
using namespace troupe::vulkan;

TEST_CASE("allocations of a pool never overlap and memory comes back", "[vulkan][C7]") {
  device_context context(test::gpus(), 0);
  memory_pool pool(context, memory_use::device, false);
  std::mt19937 random(1);
  std::vector<allocation> held;
  for (int step = 0; step < 2000; ++step) {
    if (held.size() > 60 || (!held.empty() && random() % 3 == 0)) {
      std::swap(held[random() % held.size()], held.back());
      held.pop_back();
      continue;
    }
    const int64_t bytes = 1 + static_cast<int64_t>(random() % (random() % 20 == 0 ? 3'000'000 : 20'000));
    held.push_back(pool.allocate(bytes));
    const allocation& made = held.back();
    REQUIRE(made.bytes() >= bytes);
    REQUIRE(made.offset() % 256 == 0);
    for (size_t i = 0; i + 1 < held.size(); ++i) {
      const bool apart = held[i].buffer() != made.buffer() || held[i].offset() + held[i].bytes() <= made.offset() ||
                         made.offset() + made.bytes() <= held[i].offset();
      REQUIRE(apart);
    }
  }
  held.clear();
  CHECK(pool.reserved_bytes() <= int64_t{64} << 20);
  CHECK(test::new_gpu_messages() == "");
}

TEST_CASE("more memory than there is is an error with the figure", "[vulkan][B2]") {
  device_context context(test::gpus(), 0);
  memory_pool pool(context, memory_use::device, false);
  try {
    pool.allocate(int64_t{1} << 46);
    FAIL("it was given");
  } catch (const error& e) {
    CHECK(e.code() == errc::out_of_memory);
    CHECK(std::string(e.what()).find("70368744177664") != std::string::npos);
  }
  test::new_gpu_messages(); // the layer may speak of the size: it was asked for on purpose
}

TEST_CASE("completions come once each, in the order of submission", "[vulkan][A6]") {
  device_context context(test::gpus(), 0);
  std::vector<int> ended;
  {
    timeline queue(context);
    for (int i = 0; i < 100; ++i) {
      if (i % 7 == 3)
        queue.after_all([&ended, i](VkResult) { ended.push_back(i); });
      else
        queue.submit({}, [&ended, i](VkResult) { ended.push_back(i); });
    }
    CHECK(queue.submissions() == 86);
  }
  REQUIRE(ended.size() == 100);
  CHECK(std::is_sorted(ended.begin(), ended.end()));
  CHECK(test::new_gpu_messages() == "");
}

TEST_CASE("the validation layer watches the GPU tests", "[vulkan][layer]") {
  CHECK(test::gpus_are_validated()); // Debian: vulkan-validationlayers
}

TEST_CASE("a pool does not grow beyond its limit", "[vulkan][B2][E4]") {
  device_context context(test::gpus(), 0);
  memory_pool pool(context, memory_use::device, false, 1 << 20);
  allocation most = pool.allocate(900'000);
  CHECK(pool.reserved_bytes() == 1 << 20); // no whole block
  try {
    pool.allocate(200'000);
    FAIL("it was given");
  } catch (const error& e) {
    CHECK(e.code() == errc::out_of_memory);
    CHECK_THAT(e.what(), Catch::Contains("200192 bytes asked for, 0 are left of the 1048576"));
  }
  most = {};
  CHECK_NOTHROW(pool.allocate(1 << 20));
  memory_pool none(context, memory_use::device, false, 0);
  CHECK_THROWS_AS(none.allocate(1), error);
}

TEST_CASE("memory of the host is taken in small blocks first", "[vulkan][D5]") {
  constexpr int64_t mib = 1 << 20;
  device_context context(test::gpus(), 0);
  memory_pool pool(context, GENERATE(memory_use::upload, memory_use::download), false);
  std::vector<allocation> held;
  held.push_back(pool.allocate(1000));
  CHECK(pool.reserved_bytes() == mib);
  held.push_back(pool.allocate(600'000)); // over half a block, but there is room
  CHECK(pool.reserved_bytes() == mib);
  held.push_back(pool.allocate(500'000));
  CHECK(pool.reserved_bytes() == 2 * mib);
  held.push_back(pool.allocate(900'000));
  CHECK(pool.reserved_bytes() == 4 * mib);
  held.clear();
  CHECK(pool.reserved_bytes() <= 2 * mib); // one block stays
  CHECK(test::new_gpu_messages() == "");
}

TEST_CASE("a block that nothing is in makes room for another", "[vulkan][B2]") {
  device_context context(test::gpus(), 0);
  memory_pool pool(context, memory_use::device, false, int64_t{100} << 20);
  pool.allocate(1 << 20); // in a block of 64 MiB, which is kept
  CHECK_NOTHROW(pool.allocate(int64_t{80} << 20));
  CHECK(pool.allocate(1000).bytes() >= 1000);
  CHECK(test::new_gpu_messages() == "");
}

TEST_CASE("if the driver has no whole block left, a small one serves", "[vulkan][B2][faults]") {
  device_context context(test::gpus(), 0);
  memory_pool pool(context, memory_use::device, false);
  const test::refused_call refused(test::vulkan_call::allocate_memory, 1, VK_ERROR_OUT_OF_DEVICE_MEMORY);
  const allocation small = pool.allocate(1000);
  CHECK(refused.happened());
  CHECK(pool.reserved_bytes() == small.bytes());
  CHECK(test::new_gpu_messages() == "");
}

TEST_CASE("a driver that cannot say how far the GPU is does not end its work", "[vulkan][faults]") {
  device_context context(test::gpus(), 0);
  const test::refused_call refused(test::vulkan_call::read_timeline);
  VkResult ended = VK_INCOMPLETE;
  {
    timeline queue(context);
    queue.submit({}, [&ended](VkResult result) { ended = result; });
  }
  CHECK(refused.happened());
  CHECK(ended == VK_SUCCESS);
}
