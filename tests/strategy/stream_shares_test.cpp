// One big request shared out over replicas, and streams of small ones.
#include "strategy/stream_world.hpp"
#include "support/catch.hpp"

#include <numeric>

using namespace troupe;
using namespace troupe::test;

namespace {

machine_options two_unequal(distribution how) {
  return {.replicas = {{.row_seconds = 0.01}, {.row_seconds = 0.03}}, .how = how};
}

} // namespace

TEST_CASE("a big request is cut into one share for each replica and answered once", "[strategy][C1]") {
  stream_world world(two_unequal(distribution::weighted));
  const auto id = world.submit(rows_of_key(100));
  REQUIRE(id);
  CHECK(world.started().size() == 2);
  CHECK(world.rows_by_replica(*id) == std::vector<int64_t>{75, 25});
  world.run();
  REQUIRE(world.answers().size() == 1);
  CHECK(world.answer_to(*id).time == Approx(0.75));
  const std::vector<gathered_part>& parts = world.answer_to(*id).what.parts;
  REQUIRE(parts.size() == 2);
  CHECK((parts[0].first_row == 0 && parts[0].rows == 75 && parts[1].first_row == 75 && parts[1].rows == 25));
}

TEST_CASE("rows that do not divide, and fewer rows than replicas", "[strategy][C1]") {
  machine_options options{.replicas = std::vector<replica_figures>(4, {.row_seconds = 0.01}),
                          .how = distribution::round_robin};
  stream_world world(options);
  const auto ten = world.submit(rows_of_key(10));
  CHECK(world.rows_by_replica(*ten) == std::vector<int64_t>{3, 3, 2, 2});
  world.run();
  // Those that got fewer before get more now, so that in the end all have had the same.
  const auto two = world.submit(rows_of_key(2));
  CHECK(world.rows_by_replica(*two) == std::vector<int64_t>{0, 0, 1, 1});
  world.run();
  const auto one = world.submit(rows_of_key(1));
  const std::vector<int64_t> rows = world.rows_by_replica(*one);
  CHECK(std::accumulate(rows.begin(), rows.end(), int64_t{0}) == 1);
  world.run();
  CHECK(world.answers().size() == 3);
}

TEST_CASE("a fixed cost that does not pay is not paid", "[strategy][C1]") {
  stream_world world(
      {.replicas = {{.row_seconds = 0.01}, {.row_seconds = 0.01, .fixed_seconds = 1}}, .how = distribution::weighted});
  CHECK(world.rows_by_replica(*world.submit(rows_of_key(50))) == std::vector<int64_t>{50, 0});
  world.run();
  stream_world large(
      {.replicas = {{.row_seconds = 0.01}, {.row_seconds = 0.01, .fixed_seconds = 1}}, .how = distribution::weighted});
  CHECK(large.rows_by_replica(*large.submit(rows_of_key(300))) == std::vector<int64_t>{200, 100});
}

TEST_CASE("a request that may not be cut goes to one replica as it is: in turn, or by weight", "[strategy][C1][C6]") {
  for (const distribution how : {distribution::round_robin, distribution::weighted}) {
    stream_world world(two_unequal(how));
    std::vector<int64_t> pieces(2, 0);
    for (int i = 0; i < 40; ++i) {
      const auto id = world.submit(one_piece(4));
      world.run();
      const std::vector<int64_t> rows = world.rows_by_replica(*id);
      CHECK(rows[0] + rows[1] == 4);
      ++pieces[rows[0] == 4 ? 0 : 1];
    }
    CHECK(pieces == (how == distribution::round_robin ? std::vector<int64_t>{20, 20} : std::vector<int64_t>{30, 10}));
  }
}

TEST_CASE("requests of one row get their shares over time", "[strategy][C1]") {
  stream_world world(two_unequal(distribution::weighted));
  std::vector<int64_t> rows(2, 0);
  for (int i = 0; i < 100; ++i) {
    const auto id = world.submit(rows_of_key(1));
    world.run();
    for (size_t r = 0; r < 2; ++r)
      rows[r] += world.rows_by_replica(*id)[r];
  }
  CHECK(rows == std::vector<int64_t>{75, 25});
}

TEST_CASE("shares become micro-batches if these are asked for", "[strategy][C1]") {
  machine_options options = two_unequal(distribution::weighted);
  options.micro_batch = 5;
  stream_world world(options);
  const auto id = world.submit(rows_of_key(102));
  world.run();
  CHECK(world.answers().size() == 1);
  CHECK(world.started().size() == 21);
  CHECK(world.rows_by_replica(*id)[0] == Approx(75).margin(5));
}

TEST_CASE("adaptive shares converge to measured speeds, also after a replica has become slow", "[strategy][C6]") {
  // Both are said to be equal; in truth the second is three times slower, later eight times.
  stream_world world(
      {.replicas = {{.row_seconds = 0.01, .fixed_seconds = 0.01}, {.row_seconds = 0.01, .fixed_seconds = 0.01}},
       .how = distribution::adaptive},
      {{.row_seconds = 0.01, .fixed_seconds = 0.01}, {.row_seconds = 0.03, .fixed_seconds = 0.01}});
  const auto share_after = [&](int requests) {
    std::vector<int64_t> rows;
    for (int i = 0; i < requests; ++i) {
      rows = world.rows_by_replica(*world.submit(rows_of_key(120)));
      CHECK(rows[0] + rows[1] == 120);
      world.run();
    }
    return rows[0];
  };
  CHECK(share_after(1) == 60);
  CHECK(share_after(12) == Approx(90).margin(5));
  world.truth[1].row_seconds = 0.08;
  CHECK(share_after(20) == Approx(106).margin(5));
  world.truth[1].row_seconds = 0.01;
  CHECK(share_after(20) == Approx(60).margin(6));
}

TEST_CASE("a replica that seemed too slow for any share is tried again", "[strategy][C6]") {
  stream_world world({.replicas = {{.row_seconds = 0.01}, {.row_seconds = 0.5}}, .how = distribution::adaptive},
                     {{.row_seconds = 0.01}, {.row_seconds = 0.01}});
  int64_t last = 0;
  for (int i = 0; i < 80; ++i) { // of 0.2 s; a row is thought to take 0.5 s, and its new size 0.25
    last = world.rows_by_replica(*world.submit(rows_of_key(20)))[1];
    world.run();
    if (i < 50)
      CHECK(last == 0);
  }
  CHECK(last == Approx(10).margin(1));
}

TEST_CASE("a replica that would hardly help rests until the others are lost", "[strategy][C6][C11]") {
  const distribution how = GENERATE(distribution::adaptive, distribution::stealing);
  stream_world world({.replicas = {{.row_seconds = 0.01}, {.row_seconds = 0.01}, {.row_seconds = 0.11}}, .how = how});
  for (int i = 0; i < 10; ++i) {
    CHECK(world.rows_by_replica(*world.submit(rows_of_key(640)))[2] == 0); // a twenty-second of the others' rows
    world.run();
  }
  CHECK(world.machine().replicas().why_rests(2) == "it would add 4.5 % to the others' rows a second");
  CHECK(world.machine().replicas().why_rests(0).empty());
  world.lose(0);
  CHECK(world.rows_by_replica(*world.submit(rows_of_key(640)))[2] > 0); // an eleventh
  world.run();
  CHECK(world.machine().replicas().why_rests(2).empty());
  world.lose(1);
  const auto all = world.submit(rows_of_key(640));
  world.run();
  CHECK(world.rows_by_replica(*all)[2] == 640);
}

TEST_CASE("a replica that was never measured does not outdo one that is slow for a moment", "[strategy][C6]") {
  stream_world world({.replicas = {{.row_seconds = 1e-3}, {.row_seconds = 0.05}}, .how = distribution::adaptive});
  world.truth[0].row_seconds = 0.1; // while its kernels are compiled
  for (int i = 0; i < 8; ++i) {
    CHECK(world.rows_by_replica(*world.submit(rows_of_key(8)))[1] == 0);
    world.run();
  }
}

TEST_CASE("a replica that rests takes over from one that hangs", "[strategy][C6][C11]") {
  const bool is_prepared = GENERATE(true, false);
  stream_world world({.replicas = {{.row_seconds = 0.01}, {.row_seconds = 1}}, .how = distribution::adaptive});
  if (is_prepared)
    world.submit(rows_of_key(2));
  world.run();
  world.truth[0].row_seconds = 100;
  for (int i = 0; i < 2; ++i)
    world.submit(rows_of_key(2));
  const auto third = world.submit(rows_of_key(2));
  CHECK(world.rows_by_replica(*third) == std::vector<int64_t>{0, 0}); // the first should soon be free
  world.run_until(20);
  CHECK(world.rows_by_replica(*third)[1] == (is_prepared ? 2 : 0)); // a first piece may take long
  world.run();
  CHECK(world.answer_to(*third).time < (is_prepared ? 15 : 700));
}

TEST_CASE("a first measurement that was slow does not leave a replica out", "[strategy][C6]") {
  // A piece costs mostly something other than its rows: one row, as a trial, must not look slow because of that.
  const replica_figures truth{.row_seconds = 0.001, .fixed_seconds = 0.02};
  stream_world world({.replicas = {truth, truth}, .how = distribution::adaptive});
  bool is_first = true;
  world.jitter = [&] { return std::exchange(is_first, false) ? 50 : 1; };
  int64_t last = 0;
  for (int i = 0; i < 40; ++i) {
    last = world.rows_by_replica(*world.submit(rows_of_key(64)))[0];
    world.run();
  }
  CHECK(last == Approx(32).margin(3));
}

TEST_CASE("adaptive shares stay if new ones are hardly better", "[strategy][C6]") {
  stream_world world({.replicas = {{.row_seconds = 0.01}, {.row_seconds = 0.01}}, .how = distribution::adaptive});
  int turn = 0;
  world.jitter = [&] { return 1 + 0.02 * (turn++ % 3 - 1); }; // 32 rows take 31 to 33 times a row
  for (int i = 0; i < 50; ++i) {
    CHECK(world.rows_by_replica(*world.submit(rows_of_key(64))) == std::vector<int64_t>{32, 32});
    world.run();
  }
}

TEST_CASE("adaptive shares count rows that replicas still have in flight", "[strategy][C6]") {
  stream_world world({.replicas = {{.row_seconds = 0.01}, {.row_seconds = 0.01}}, .how = distribution::adaptive});
  stream_request pinned = one_piece(40);
  pinned.pinned = 1;
  world.submit(pinned);
  CHECK(world.rows_by_replica(*world.submit(rows_of_key(100))) == std::vector<int64_t>{70, 30});
  world.run();
  CHECK(world.now() == Approx(0.7));
}

TEST_CASE("answers come in order if that is asked for, else as they come", "[strategy][C1]") {
  for (const bool ordered : {true, false}) {
    machine_options options = two_unequal(distribution::round_robin);
    options.ordered = ordered;
    options.queue_limit = 3;
    stream_world world(options);
    stream_request slow = one_piece(100), quick = one_piece(1);
    slow.pinned = 1;
    quick.pinned = 0;
    world.submit(slow);
    for (int i = 0; i < 3; ++i)
      CHECK(world.submit(quick));
    world.run_until(1);
    CHECK(world.answers().size() == (ordered ? 0 : 3));
    CHECK(world.submit(quick).has_value() == !ordered); // answers that are held back fill the queue
    world.run();
    CHECK(world.answers().front().what.request == (ordered ? 0 : 1));
    CHECK(world.answers().size() == (ordered ? 4 : 5));
    CHECK(world.machine().has_room());
  }
}

TEST_CASE("while others prepare, a replica that rests does not take over, however good its prediction is",
          "[strategy][C6][C11]") {
  // As bert_base over two GPUs and a CPU: the predictions of all are far too good, the CPU's most.
  stream_world world({.replicas = {{.row_seconds = 13e-6}, {.row_seconds = 13e-6}, {.row_seconds = 585e-6}},
                      .how = distribution::adaptive,
                      .depth = 2},
                     {{.row_seconds = 0.15e-3}, {.row_seconds = 0.1e-3}, {.row_seconds = 16.8e-3}});
  std::array<int, 3> begun{};
  world.extra = [&](const stream_world::started_piece& p) { return begun.at(p.what.replica)++ == 0 ? 1.8 : 0; };
  std::array<int, 3> ended{};
  world.outcome_of = [&](const start_piece& p) { return piece_outcome{.is_usual = ended.at(p.replica)++ >= 2}; };
  for (int sent = 0; sent < 300; world.step())
    for (; world.unanswered() < 4 && sent < 300; ++sent)
      world.submit(rows_of_key(64));
  world.run();
  const auto is_by_cpu = [](const stream_world::started_piece& p) { return p.what.replica == 2; };
  CHECK(std::ranges::none_of(world.started(), is_by_cpu));
  CHECK(world.last_answer() < 3.2);
}

TEST_CASE("where each replica would rest for the sake of another one, one works", "[strategy][C6][C11]") {
  // The first is slower than predicted: measured, it adds little to what is predicted of the second, which by
  // predictions adds little to the first.
  replica_roster roster(
      {.replicas = {{.row_seconds = 1e-6}, {.fixed_seconds = 0.0012}}, .how = distribution::adaptive});
  for (int i = 0; i < 8; ++i)
    roster[0].speed.measured(12, 0.3);
  roster.compare_speeds(12);
  CHECK(roster[0].rests());
  CHECK_FALSE(roster[1].rests());
}
