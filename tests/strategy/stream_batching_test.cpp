// Requests that are joined: when a batch starts, and which requests are in it.
#include "strategy/stream_world.hpp"
#include "support/catch.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

machine_options one_that_joins(double max_delay) {
  return {.replicas = {{.row_seconds = 1e-3, .fixed_seconds = 0.01}},
          .depth = 1,
          .max_batch = 8,
          .max_delay = std::chrono::nanoseconds(std::llround(max_delay * 1e9))};
}

std::vector<request_id> requests_of(const start_piece& piece) {
  std::vector<request_id> all;
  for (const piece_part& part : piece.parts)
    all.push_back(part.request);
  return all;
}

} // namespace

TEST_CASE("a batch starts when it is full", "[strategy][C1]") {
  stream_world world(one_that_joins(1));
  for (int i = 0; i < 7; ++i)
    world.submit(rows_of_key(1));
  world.run_until(0.5);
  CHECK(world.started().empty());
  world.submit(rows_of_key(1));
  REQUIRE(world.started().size() == 1);
  CHECK(world.started()[0].rows == 8);
  CHECK(requests_of(world.started()[0].what) == std::vector<request_id>{0, 1, 2, 3, 4, 5, 6, 7});
  world.run();
  CHECK(world.answers().size() == 8);
}

TEST_CASE("a batch starts when its oldest request has waited as long as it may", "[strategy][C1]") {
  stream_world world(one_that_joins(0.2));
  world.submit(rows_of_key(1));
  world.run_until(0.1);
  world.submit(rows_of_key(2));
  world.run();
  REQUIRE(world.started().size() == 1);
  CHECK(world.started()[0].time == Approx(0.2));
  CHECK(world.started()[0].rows == 3);
}

TEST_CASE("without a delay a batch starts at once if a replica is idle, else with requests that have come meanwhile",
          "[strategy][C1]") {
  stream_world world(one_that_joins(0));
  for (int i = 0; i < 12; ++i)
    world.submit(rows_of_key(1));
  world.run();
  REQUIRE(world.started().size() == 3);
  CHECK(world.started()[0].rows == 1);
  CHECK(world.started()[1].rows == 8);
  CHECK(world.started()[2].rows == 3);
}

TEST_CASE("only requests that fit together are joined", "[strategy][C1]") {
  stream_world world(one_that_joins(0));
  world.submit(rows_of_key(1));
  const auto a = world.submit(rows_of_key(3, 1)), b = world.submit(rows_of_key(3, 2)),
             c = world.submit(rows_of_key(4, 1)), d = world.submit(rows_of_key(2, 1)),
             whole = world.submit(one_piece(1));
  world.run();
  REQUIRE(world.started().size() == 5);
  CHECK(requests_of(world.started()[1].what) == std::vector<request_id>{*a, *c}); // d is one row too many
  CHECK(requests_of(world.started()[2].what) == std::vector<request_id>{*b});
  CHECK(requests_of(world.started()[3].what) == std::vector<request_id>{*d});
  CHECK(requests_of(world.started()[4].what) == std::vector<request_id>{*whole});
}

TEST_CASE("a request with more rows than a batch is cut, never joined", "[strategy][C1]") {
  machine_options options = one_that_joins(10);
  options.micro_batch = 4;
  stream_world world(options);
  world.submit(rows_of_key(9));
  CHECK(world.started().size() == 1); // it does not wait
  world.run();
  CHECK(world.answers().size() == 1);
  for (const stream_world::started_piece& p : world.started())
    CHECK((p.rows <= 4 && p.what.parts.size() == 1));
}

TEST_CASE("a request that must soon be answered does not wait for others", "[strategy][C1]") {
  stream_world world(one_that_joins(1));
  stream_request urgent = rows_of_key(1);
  urgent.deadline = at(0.1);
  const auto id = world.submit(urgent);
  world.run();
  CHECK_FALSE(world.answer_to(*id).what.why.failed());
  CHECK(world.started()[0].time == Approx(0.1 - 2 * 0.011));
}

TEST_CASE("rows that come back from a lost piece do not wait again", "[strategy][C1][C11]") {
  machine_options options = one_that_joins(1);
  options.replicas.push_back(options.replicas[0]);
  stream_world world(options);
  for (int i = 0; i < 8; ++i)
    world.submit(rows_of_key(1));
  REQUIRE(world.started().size() == 1);
  world.lose(world.started()[0].what.replica);
  REQUIRE(world.started().size() == 2);
  CHECK(world.started()[1].rows == 8);
}
