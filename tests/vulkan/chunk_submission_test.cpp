#include "support/catch.hpp"
#include "support/gpu.hpp"
#include "vulkan/chunk_submission.hpp"

using namespace troupe;
using namespace troupe::vulkan;

namespace {

/// A run that copies this many bytes in and out.
copy_needs needs_of(int64_t in, int64_t out) {
  return {.in = in > 0, .out = out > 0, .bytes_in = in, .bytes_out = out};
}

constexpr int64_t large = 8 << 20, small = 1000;

} // namespace

TEST_CASE("large copies go beside the work of others", "[vulkan][A14]") {
  const copy_lanes lanes = choose_lanes(needs_of(large, small), true, true);
  CHECK(lanes.in == lane::copies);
  CHECK(lanes.out == lane::work);
  CHECK(choose_lanes(needs_of(small, large), true, true).out == lane::copies);
  CHECK(!choose_lanes(needs_of(0, large), true, true).in);
  CHECK(!choose_lanes(needs_of(large, 0), true, true).out);
}

TEST_CASE("copies stay in the lane for work where nothing is gained", "[vulkan][A14]") {
  CHECK(choose_lanes(needs_of(large, large), true, false).in == lane::work); // an idle GPU
  CHECK(choose_lanes(needs_of(large, large), false, true).in == lane::work); // one queue
  copy_needs reads = needs_of(large, large);
  reads.reads_residents = true;
  CHECK(choose_lanes(reads, true, true).in == lane::work);
  CHECK(choose_lanes(reads, true, true).out == lane::copies);
}

TEST_CASE("a submission waits for one of another lane", "[vulkan][A6]") {
  device_context context(test::gpus(), 0);
  std::vector<int> ended;
  {
    timeline queues(context);
    submission last;
    for (int i = 0; i < 50; ++i) {
      const lane on = i % 2 ? lane::copies : lane::work;
      last = queues.submit({}, i % 3 ? completion([&ended, i](VkResult) { ended.push_back(i); }) : nullptr, on, last);
    }
    CHECK(queues.submissions() == 50);
  }
  CHECK(ended.size() == 33);
  CHECK(std::is_sorted(ended.begin(), ended.end()));
  CHECK(test::new_gpu_messages() == "");
}
