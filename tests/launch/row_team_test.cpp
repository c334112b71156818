#include "launch/row_team.hpp"
#include "support/catch.hpp"

#include <bit>

using namespace troupe;

TEST_CASE("teams fit every row and device", "[ops]") {
  for (uint32_t subgroup : {8u, 32u, 64u})
    for (uint32_t group : {128u, 256u, 1024u})
      for (int64_t size : {1, 2, 31, 64, 768, 4096, 50257, 1 << 20})
        for (int64_t outer : {1, 128, 100000})
          for (int64_t inner : {1, 3, 400})
            for (bool plain : {false, true}) {
              const gpu_features gpu{.subgroup_size = subgroup, .max_group_size = group, .units = 132};
              const row_extent e{outer, size, inner};
              const row_team t = choose_team(e, e.width(), plain, gpu);
              CAPTURE(subgroup, group, size, outer, inner, plain);
              CHECK(t.threads <= group);
              CHECK(t.items >= 1);
              CHECK(t.items * t.width <= 32);
              CHECK(t.rows >= 1);
              CHECK(t.lanes * t.rows == t.threads);
              if (plain) {
                CHECK(t.kind != team_kind::subgroup);
                CHECK(std::has_single_bit(t.lanes));
              }
              const auto groups = t.groups(e.rows(), gpu);
              CHECK(int64_t{groups[0]} * groups[1] * t.rows >= e.rows());
            }
}

TEST_CASE("a norm of 128 rows of 768 is a vector for each invocation", "[ops]") {
  const gpu_features gpu{.subgroup_size = 32, .max_group_size = 1024, .units = 132};
  const row_extent e{128, 768, 1};
  const row_team t = choose_team(e, e.width(), false, gpu);
  CHECK(t.kind == team_kind::group);
  CHECK(t.threads == 192);
  CHECK(t.items == 1);
  CHECK(t.groups(e.rows(), gpu)[0] == 128);
}

TEST_CASE("short rows are a subgroup's, rows side by side an invocation's", "[ops]") {
  const gpu_features gpu{.subgroup_size = 32, .max_group_size = 1024, .units = 132};
  CHECK(choose_team({1536, 128, 1}, 4, false, gpu).kind == team_kind::subgroup);
  CHECK(choose_team({1, 21, 90000}, 1, false, gpu).kind == team_kind::invocation);
}
