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

TEST_CASE("copies go beside the work if that gains something", "[vulkan][A14]") {
  device_context context(test::gpus(), 0);
  // If a GPU has no queues for copies, everything stays in the lane for work.
  const lane in = context.has(lane::copies_in) ? lane::copies_in : lane::work;
  const lane out = context.has(lane::copies_out) ? lane::copies_out : lane::work;
  const meanwhile both{.in = true, .out = true};
  CHECK(choose_lanes(needs_of(large, small), context, both).in == in);
  CHECK(choose_lanes(needs_of(large, small), context, both).out == lane::work);
  CHECK(choose_lanes(needs_of(small, large), context, both).out == out);
  CHECK(!choose_lanes(needs_of(0, large), context, both).in);
  CHECK(!choose_lanes(needs_of(large, 0), context, both).out);
  CHECK(choose_lanes(needs_of(large, large), context, {}).in == lane::work); // an idle GPU
  CHECK(choose_lanes(needs_of(large, large), context, {.out = true}).in == lane::work);
  CHECK(choose_lanes(needs_of(large, large), context, {.out = true}).out == out);
  copy_needs reads = needs_of(large, large);
  reads.reads_residents = true;
  CHECK(choose_lanes(reads, context, both).in == lane::work);
  CHECK(choose_lanes(reads, context, both).out == out);
}
