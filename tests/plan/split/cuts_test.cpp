#include "plan/split/cuts.hpp"
#include "support/catch.hpp"

using namespace troupe;

namespace {

const split_team thirds{{0, 1, 2}, {0, 21, 43, 64}};
const dim n = dim::symbol("n");

/// The pieces as (device, begin, end).
std::vector<std::array<int64_t, 3>> numbers(const std::vector<part_piece>& pieces) {
  std::vector<std::array<int64_t, 3>> all;
  for (const part_piece& p : pieces)
    all.push_back({static_cast<int64_t>(p.from), p.begin.constant(), p.end.constant()});
  return all;
}

} // namespace

TEST_CASE("a dim is divided by shares, at multiples of a grain", "[plan][split]") {
  CHECK(divide(64, thirds, 1) == part_bounds{0, 21, 43, 64});
  CHECK(divide(640, thirds, 16) == part_bounds{0, 208, 416, 640});
  const part_bounds halves = divide(n, {{0, 1}, {0, 32, 64}}, 1);
  CHECK(halves[1].evaluate({{"n", 9}}) == 4);
  CHECK(halves.back() == n);
}

TEST_CASE("what a device needs of others is found as pieces of their parts", "[plan][split]") {
  std::vector<dim> nonnegative;
  const part_bounds bounds{0, 10, 12, 30};
  CHECK(numbers(*pieces_of(bounds, 1, 8, 14, nonnegative)) ==
        std::vector<std::array<int64_t, 3>>{{0, 8, 10}, {1, 0, 2}, {2, 0, 2}});
  CHECK(numbers(*pieces_of(bounds, 2, 9, 30, nonnegative)) ==
        std::vector<std::array<int64_t, 3>>{{0, 9, 10}, {1, 0, 2}, {2, 0, 18}});
  CHECK(nonnegative.empty());
}

TEST_CASE("pieces of symbolic parts are of the neighbours, as long as these are long enough", "[plan][split]") {
  std::vector<dim> nonnegative;
  const part_bounds bounds{0, 4 * n, 8 * n};
  const auto pieces = pieces_of(bounds, 1, 4 * n - 2, 8 * n, nonnegative);
  REQUIRE(pieces->size() == 2);
  CHECK((*pieces)[0].begin == 4 * n - 2);
  CHECK((*pieces)[1].end == 4 * n);
  REQUIRE(nonnegative.size() == 2);
  CHECK(nonnegative[0] == 4 * n - 2);
  CHECK_FALSE(pieces_of(bounds, 1, 3 * n, 8 * n, nonnegative));     // how much that is depends on n
  CHECK_FALSE(pieces_of(bounds, 1, 4 * n, 8 * n + 1, nonnegative)); // nothing is there
}

TEST_CASE("windows need what is beside a part, and padding at the ends alone", "[plan][split]") {
  const axis_window window{.size = 3, .stride = 2, .dilation = 1, .begin = 1};
  std::vector<dim> nonnegative;
  const part_bounds bounds{0, 4, 8}; // of 16 indices
  const auto low = need_of(window, bounds, 0, 16, 0, nonnegative),
             high = need_of(window, bounds, 1, 16, 0, nonnegative);
  CHECK((low->first.is(0) && low->end.is(8) && low->pad_begin == 1 && low->pad_end == 0));
  CHECK((high->first.is(7) && high->end.is(16) && high->pad_begin == 0 && high->pad_end == 0));
  // A part that is shorter than its windows: they reach beyond the value.
  const auto tiny = need_of({.size = 5, .begin = 2}, {0, 1, 3}, 0, 3, 2, nonnegative);
  CHECK((tiny->first.is(0) && tiny->end.is(3) && tiny->pad_begin == 2 && tiny->pad_end == 0));
  CHECK(nonnegative.empty());
}
