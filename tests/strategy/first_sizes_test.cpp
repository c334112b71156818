#include "strategy/first_sizes.hpp"

#include "strategy/stream_world.hpp"
#include "support/catch.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

using sizes = std::vector<std::set<int64_t>>;

const std::vector<replica_figures> equal(2, {.row_seconds = 1e-3, .fixed_seconds = 1e-3});

} // namespace

TEST_CASE("the first sizes are those of the first requests", "[strategy][C6]") {
  const distribution how = GENERATE(distribution::adaptive, distribution::stealing, distribution::weighted);
  const int64_t micro_batch = how == distribution::stealing ? 16 : 0;
  const machine_options options{.replicas = equal, .how = how, .micro_batch = micro_batch};
  const sizes found = first_sizes(options, rows_of_key(64));
  stream_world world(options);
  for (int i = 0; i < 8; ++i)
    world.submit(rows_of_key(64));
  world.run();
  sizes seen(2);
  for (const stream_world::started_piece& p : world.started())
    seen[p.what.replica].insert(p.rows);
  CHECK(found == seen);
}

TEST_CASE("a replica that rests is not prepared", "[strategy][C6]") {
  machine_options options{.replicas = equal, .how = distribution::adaptive};
  options.replicas.push_back({.row_seconds = 1});
  CHECK(first_sizes(options, rows_of_key(64)) == sizes{{32, 64}, {32, 64}, {}});
}

TEST_CASE("requests that wait to be joined have sizes too", "[strategy][C5]") {
  const machine_options options{.replicas = equal, .max_batch = 3, .max_delay = std::chrono::seconds(1)};
  const sizes found = first_sizes(options, rows_of_key(1));
  CHECK((found[0].contains(3) && found[1].contains(3)));
  CHECK(first_sizes({.replicas = equal}, one_piece(1)) == sizes{{1}, {1}});
}
