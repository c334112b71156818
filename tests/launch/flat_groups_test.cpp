#include "launch/launch.hpp"
#include "support/catch.hpp"

using namespace troupe;

TEST_CASE("groups of one dimension lie in lines of x, as many as there are and no more than the device takes",
          "[launch]") {
  using groups = std::array<uint32_t, 3>;
  const gpu_features gpu{.max_groups = {1u << 31, 65535, 65535}};
  CHECK(flat_groups(1, 256, gpu) == groups{1, 1, 1});
  CHECK(flat_groups(257, 256, gpu) == groups{2, 1, 1});
  CHECK(flat_groups(256 * 65535, 256, gpu) == groups{65535, 1, 1});
  CHECK(flat_groups(256 * 65535 + 1, 256, gpu) == groups{65535, 2, 1});
  CHECK(flat_groups(10, 1, {.max_groups = {4, 4, 4}}) == groups{4, 3, 1});
  CHECK(flat_groups(0, 256, gpu)[1] == 0); // nothing to do: no group
}
