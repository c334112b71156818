// Requests that end early: cancelled, failed, with lost replicas.
#include "strategy/stream_world.hpp"
#include "support/catch.hpp"
#include "support/thrown.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

machine_options two_equal() {
  return {.replicas = std::vector<replica_figures>(2, {.row_seconds = 0.01}), .micro_batch = 4, .max_batch = 4};
}

piece_outcome failed_with(errc code) {
  return {.why = {code, "it did not work"}};
}

} // namespace

TEST_CASE("a cancelled request is answered at once, wherever it is, and its siblings go on", "[strategy][C1]") {
  stream_world world(two_equal());
  const auto a = world.submit(rows_of_key(3)), b = world.submit(rows_of_key(40)), c = world.submit(rows_of_key(2)),
             d = world.submit(rows_of_key(2));
  world.run_until(0.001);
  world.cancel(*b); // some of it in flight
  CHECK(world.answer_to(*b).what.why.code == errc::cancelled);
  world.cancel(*c); // waits, to be joined with d, or flies with it
  world.cancel(*c); // nothing more
  world.run();
  CHECK(world.answers().size() == 4);
  CHECK_FALSE(world.answer_to(*a).what.why.failed());
  CHECK_FALSE(world.answer_to(*d).what.why.failed());
}

TEST_CASE("one of a joined batch that is cancelled in flight does not affect the others", "[strategy][C1]") {
  stream_world world({.replicas = {{.row_seconds = 0.01}}, .depth = 1, .max_batch = 8});
  world.submit(one_piece());
  const auto a = world.submit(rows_of_key(3)), b = world.submit(rows_of_key(3));
  world.run_until(0.02);
  REQUIRE(world.started().back().what.parts.size() == 2);
  world.cancel(*a);
  world.run();
  CHECK_FALSE(world.answer_to(*b).what.why.failed());
  CHECK(world.answers().size() == 3);
}

TEST_CASE("a failed part fails its request once, with the first error", "[strategy][C1]") {
  stream_world world(two_equal());
  const auto id = world.submit(rows_of_key(16));
  world.end_first(0, failed_with(errc::device_failed));
  world.end_first(1, failed_with(errc::internal));
  CHECK(world.answers().size() == 1);
  CHECK(world.answer_to(*id).what.why.code == errc::device_failed);
  world.run();
  CHECK(world.answers().size() == 1);
  CHECK(world.started().size() <= 4); // the rest never starts
}

TEST_CASE("one bad request of a joined batch fails alone", "[strategy][C1]") {
  stream_world world({.replicas = {{.row_seconds = 0.01}}, .max_batch = 8});
  world.submit(one_piece());
  world.submit(one_piece());
  const auto a = world.submit(rows_of_key(2)), bad = world.submit(rows_of_key(2)), c = world.submit(rows_of_key(2));
  world.outcome_of = [&](const start_piece& piece) {
    for (const piece_part& part : piece.parts)
      if (part.request == *bad)
        return failed_with(errc::invalid_input);
    return piece_outcome{};
  };
  world.run();
  CHECK(world.started().size() == 2 + 1 + 3);
  CHECK(world.answer_to(*bad).what.why.code == errc::invalid_input);
  CHECK_FALSE(world.answer_to(*a).what.why.failed());
  CHECK_FALSE(world.answer_to(*c).what.why.failed());
}

TEST_CASE("an error that comes from no input fails all of a joined batch", "[strategy][C1]") {
  stream_world world({.replicas = {{.row_seconds = 0.01}}, .max_batch = 8, .max_delay = std::chrono::seconds(1)});
  world.outcome_of = [](const start_piece&) { return failed_with(errc::device_failed); };
  for (int i = 0; i < 4; ++i)
    world.submit(rows_of_key(2));
  world.run();
  CHECK(world.started().size() == 1);
  REQUIRE(world.answers().size() == 4);
  for (const stream_world::told& a : world.answers())
    CHECK(a.what.why.code == errc::device_failed);
}

TEST_CASE("pieces that a lost replica held go to the others first, nothing is lost or answered twice",
          "[strategy][C1][C11]") {
  for (const distribution how :
       {distribution::round_robin, distribution::weighted, distribution::adaptive, distribution::stealing}) {
    CAPTURE(int(how));
    machine_options options{.replicas = std::vector<replica_figures>(3, {.row_seconds = 0.01}), .how = how};
    stream_world world(options);
    const auto big = world.submit(rows_of_key(90));
    for (int i = 0; i < 20; ++i)
      world.submit(one_piece(2));
    world.run_until(0.1);
    const size_t before = world.started().size();
    world.lose(1);
    world.lose(1); // nothing more
    world.run();
    CHECK(world.answers().size() == 21);
    for (const stream_world::told& a : world.answers())
      CHECK_FALSE(a.what.why.failed());
    REQUIRE(world.started().size() > before);
    CHECK(world.started()[before].what.parts[0].request == *big);
  }
}

TEST_CASE("if no replica is left all fail, and one that joins gets work", "[strategy][C1][C11]") {
  stream_world world(two_equal());
  for (int i = 0; i < 20; ++i)
    world.submit(rows_of_key(8));
  world.lose(0);
  CHECK(world.answers().empty());
  world.lose(1);
  CHECK(world.answers().size() == 20);
  CHECK(world.answers()[0].what.why.code == errc::device_lost);
  CHECK_THAT(world.answers()[0].what.why.message, Catch::Contains("pulled out"));
  const auto none = world.submit(rows_of_key(8));
  CHECK(world.answer_to(*none).what.why.code == errc::device_lost);
  world.join(1, {.row_seconds = 0.01}, {.row_seconds = 0.01}); // in the place of the lost one
  const auto id = world.submit(rows_of_key(80));
  world.join(2, {.row_seconds = 0.01}, {.row_seconds = 0.01}); // a new one
  world.run();
  CHECK_FALSE(world.answer_to(*id).what.why.failed());
  const std::vector<int64_t> rows = world.rows_by_replica(*id);
  CHECK((rows[0] == 0 && rows[1] > 20 && rows[2] > 20));
}

TEST_CASE("a pinned request runs on its replica only, and fails with it", "[strategy][C1]") {
  stream_world world(two_equal());
  stream_request pinned = rows_of_key(8);
  pinned.pinned = 1;
  const auto runs = world.submit(pinned);
  world.run();
  CHECK(world.rows_by_replica(*runs) == std::vector<int64_t>{0, 8});
  const auto flies = world.submit(pinned), waits = world.submit(pinned), free = world.submit(rows_of_key(8));
  world.lose(1);
  CHECK(world.answer_to(*flies).what.why.code == errc::device_lost);
  CHECK(world.answer_to(*waits).what.why.code == errc::device_lost);
  const auto too_late = world.submit(pinned);
  CHECK_THAT(world.answer_to(*too_late).what.why.message, Catch::Contains("replica 1, to which the request is pinned"));
  world.run();
  CHECK_FALSE(world.answer_to(*free).what.why.failed());
}

TEST_CASE("a replica that loses three pieces in a row counts as lost", "[strategy][C1][C11]") {
  stream_world world(two_equal());
  const auto id = world.submit(rows_of_key(400));
  for (int i = 0; i < 2; ++i)
    world.end_first(0, {.lost = true, .why = {}});
  world.end_first(0, {});
  for (int i = 0; i < 3; ++i) {
    CHECK(world.machine().replicas().is_living(0));
    world.end_first(0, {.lost = true, .why = {}});
  }
  CHECK_FALSE(world.machine().replicas().is_living(0));
  world.run();
  CHECK_FALSE(world.answer_to(*id).what.why.failed());
}

TEST_CASE("a stream that is closed answers all", "[strategy][C1]") {
  stream_machine machine(two_equal());
  for (int i = 0; i < 30; ++i)
    machine.submit(rows_of_key(8), at(0));
  std::vector<stream_command> commands;
  machine.take_commands(commands);
  machine.close(at(1));
  machine.take_commands(commands);
  CHECK(commands.size() == 30);
  CHECK((machine.open() == 0 && machine.waiting() == 0));
}

TEST_CASE("options and requests that make no sense are refused by name", "[strategy][C1]") {
  const auto refused = [](auto change) {
    machine_options options = two_equal();
    change(options);
    return std::string(thrown_by([&] { stream_machine machine(options); }).what());
  };
  CHECK_THAT(refused([](machine_options& o) { o.depth = 0; }), Catch::Contains("depth is 0"));
  CHECK_THAT(refused([](machine_options& o) { o.queue_limit = 0; }), Catch::Contains("queue_limit is 0"));
  CHECK_THAT(refused([](machine_options& o) { o.fair_turn = 0; }), Catch::Contains("fair_turn is 0"));
  CHECK_THAT(refused([](machine_options& o) { o.micro_batch = -1; }), Catch::Contains("micro_batch is -1"));
  CHECK_THAT(refused([](machine_options& o) { o.max_delay = std::chrono::nanoseconds(-1); }),
             Catch::Contains("max_delay is -1"));
  CHECK_THAT(refused([](machine_options& o) { o.replicas[0].row_seconds = -1; }),
             Catch::Contains("must be finite and not negative"));
  stream_machine machine(two_equal());
  CHECK_THAT(thrown_by([&] { machine.submit(rows_of_key(0), at(0)); }).what(), Catch::Contains("at least one"));
  stream_request pinned = one_piece();
  pinned.pinned = 2;
  CHECK_THAT(thrown_by([&] { machine.submit(pinned, at(0)); }).what(), Catch::Contains("pinned to replica 2"));
  CHECK_THAT(thrown_by([&] { machine.replica_joined(0, {}, at(0)); }).what(), Catch::Contains("replica 0 cannot join"));
}
