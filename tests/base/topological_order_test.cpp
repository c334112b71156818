#include "base/topological_order.hpp"
#include "support/catch.hpp"

#include <numeric>
#include <random>

using namespace troupe;

using edge_list = std::vector<std::pair<uint32_t, uint32_t>>;

TEST_CASE("the lowest vertex that may come next does", "[D4]") {
  CHECK(topological_order(0, {}).empty());
  CHECK(topological_order(4, edge_list{{3, 0}, {0, 1}}) == std::vector<uint32_t>{2, 3, 0, 1});
  CHECK(topological_order(3, edge_list{{0, 2}, {0, 2}}) == std::vector<uint32_t>{0, 1, 2});
}

TEST_CASE("nodes on a cycle or after it are missing", "[D4][D8]") {
  CHECK(topological_order(5, edge_list{{0, 1}, {1, 2}, {2, 1}, {2, 3}}) == std::vector<uint32_t>{0, 4});
  CHECK(topological_order(2, edge_list{{1, 1}}) == std::vector<uint32_t>{0});
}

TEST_CASE("every edge of a random graph leads forwards", "[D4]") {
  std::mt19937 random(5);
  for (int i = 0; i < 50; ++i) {
    const size_t count = 2 + random() % 60;
    std::vector<uint32_t> hidden(count); // an order that there is
    std::iota(hidden.begin(), hidden.end(), 0);
    std::shuffle(hidden.begin(), hidden.end(), random);
    edge_list edges;
    for (size_t e = random() % (4 * count); e-- > 0;) {
      const size_t a = random() % count, b = random() % count;
      if (a != b)
        edges.emplace_back(hidden[std::min(a, b)], hidden[std::max(a, b)]);
    }
    const std::vector<uint32_t> order = topological_order(count, edges);
    REQUIRE(order.size() == count);
    std::vector<size_t> position(count);
    for (size_t p = 0; p < count; ++p)
      position[order[p]] = p;
    for (const auto& [from, to] : edges)
      CHECK(position[from] < position[to]);
  }
}

TEST_CASE("a cycle is found, without what leads to it or comes after it", "[D4][D8][C5]") {
  CHECK(find_cycle(3, edge_list{{0, 1}, {1, 2}, {0, 2}}).empty());
  CHECK(find_cycle(0, {}).empty());
  CHECK(find_cycle(2, edge_list{{0, 1}, {1, 1}}) == std::vector<uint32_t>{1});
  std::mt19937 random(9);
  for (int i = 0; i < 200; ++i) {
    const size_t count = 1 + random() % 30;
    edge_list edges;
    for (size_t e = random() % (2 * count); e-- > 0;)
      edges.emplace_back(random() % count, random() % count);
    const std::vector<uint32_t> cycle = find_cycle(count, edges);
    REQUIRE(cycle.empty() == (topological_order(count, edges).size() == count));
    for (size_t at = 0; at < cycle.size(); ++at) {
      CHECK(std::count(cycle.begin(), cycle.end(), cycle[at]) == 1);
      CHECK(std::count(edges.begin(), edges.end(), std::pair(cycle[at], cycle[(at + 1) % cycle.size()])) > 0);
    }
  }
}

TEST_CASE("a long cycle is told by its beginning and its length", "[D8]") {
  const auto name = [](uint32_t v) { return "v" + std::to_string(v); };
  std::vector<uint32_t> cycle(8);
  std::iota(cycle.begin(), cycle.end(), 0);
  CHECK(cycle_text(cycle, name) == "v0, v1, v2, v3, v4, v5, v6, v7");
  cycle.push_back(8);
  CHECK(cycle_text(cycle, name) == "v0, v1, v2, v3, v4, v5, v6, v7, and so on (9 in all)");
}
