// Launch rules of norms of channels on fabricated devices. Results are tested on a device.
#include "launch/parameters.hpp"
#include "ops/run_op.hpp"
#include "support/catch.hpp"
#include "support/operator_launches.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

launch_lists lists_of(const shape& dims, int64_t groups, dtype type, layout l, const gpu_features& gpu) {
  const operand x{.type = type, .dims = dims, .layout = l}, scale{.type = type, .dims = {dims[1]}};
  const attributes attrs = attrs_of({{"num_groups", groups}});
  return onnx_launches("GroupNormalization", {attrs, {x, scale, scale}, {x}, gpu});
}

gpu_features device(uint32_t units, uint32_t group) {
  return {.subgroup_size = 32,
          .max_group_size = group,
          .max_binding_bytes = int64_t{1} << 32,
          .float16 = true,
          .subgroup_arithmetic = true,
          .units = units};
}

/// Every pixel is in one part, every vector of it in one block, and every slice in the same block of all pixels.
void check_blocks(const launch_list& list, const shape& dims, int64_t groups, const gpu_features& gpu) {
  const int64_t pixels = dims[2] * dims[3];
  for (const launch& l : list.launches) {
    const int64_t threads = l.constants.at(0), block = l.constants.at(1), slice = l.constants.at(2),
                  width = l.constants.at(5);
    const auto* p = reinterpret_cast<const shader::group_norm*>(l.params.data());
    CHECK(threads <= gpu.max_group_size);
    CHECK(threads % block == 0);
    CHECK(block % slice == 0);
    CHECK(slice * width == dims[1] / groups);
    CHECK(dims[1] % (block * width) == 0);
    CHECK(int64_t{p->parts} * p->per_part >= pixels);
    CHECK(int64_t{p->parts - 1} * p->per_part < pixels);
    CHECK(int64_t{l.groups[0]} * l.groups[1] >= dims[0] * (dims[1] / (block * width)) * p->parts);
  }
}

} // namespace

TEST_CASE("Norms of channels-last operands cover them", "[ops]") {
  for (const uint32_t units : {8u, 132u})
    for (const uint32_t group : {128u, 1024u})
      for (const auto& [dims, groups] : {std::pair<shape, int64_t>{{1, 32, 128, 128}, 8},
                                         {{3, 320, 33, 31}, 32},
                                         {{1, 37, 100, 7}, 37},
                                         {{1, 1280, 8, 8}, 32},
                                         {{2, 6, 1, 2}, 2},
                                         {{1, 64, 2000, 1500}, 1}}) {
        INFO(units << ", " << group << ", " << to_string(dims) << ", " << groups);
        const gpu_features gpu = device(units, group);
        const auto lists = lists_of(dims, groups, dtype::float32, layout::channels_last, gpu);
        REQUIRE(lists.size() >= 3);
        CHECK(lists[0].name.starts_with("group_norm"));
        for (const launch_list& l : lists)
          if (l.name.starts_with("group_norm"))
            check_blocks(l, dims, groups, gpu);
      }
}

TEST_CASE("Large slices are divided among many workgroups, small ones are a launch", "[ops]") {
  const gpu_features gpu = device(132, 1024);
  const auto first = [&](const shape& dims, layout l) { return lists_of(dims, 8, dtype::float16, l, gpu).at(0); };
  for (const layout l : {layout::channels_last, layout::plain}) {
    const launch_list large = first({1, 32, 128, 128}, l);
    REQUIRE(large.launches.size() == 2);
    CHECK(large.launches[1].step > large.launches[0].step);
    CHECK(int64_t{large.launches[0].groups[0]} * large.launches[0].groups[1] > 64);
    CHECK(first({1, 256, 16, 16}, l).launches.size() == 1);
    CHECK(first({64, 256, 16, 16}, l).launches.size() == 1);
  }
}
