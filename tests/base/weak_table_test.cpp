#include "base/weak_table.hpp"

#include "support/catch.hpp"

#include <vector>

using namespace troupe;

TEST_CASE("a table of weak pointers keeps nothing alive", "[base]") {
  weak_table<int, int> table;
  auto one = std::make_shared<int>(1);
  table.add(7, one);
  CHECK(table.find(7) == one);
  CHECK(table.find(8) == nullptr);
  const auto two = std::make_shared<int>(2);
  table.add(7, two);
  CHECK(table.find(7) == two);
  table.add(8, one);
  one = nullptr;
  CHECK(table.find(8) == nullptr);
  int sum = 0;
  table.for_each([&](int each) { sum += each; });
  CHECK(sum == 2);
}

TEST_CASE("a table of weak pointers does not grow with objects that have died", "[base]") {
  weak_table<int, int> table;
  std::vector<std::shared_ptr<int>> kept;
  for (int i = 0; i < 100'000; ++i) {
    auto made = std::make_shared<int>(i);
    table.add(i, made);
    if (i % 1000 == 0)
      kept.push_back(std::move(made));
  }
  CHECK(table.size() <= 2 * kept.size());
  for (const auto& each : kept)
    CHECK(table.find(*each) == each);
}
