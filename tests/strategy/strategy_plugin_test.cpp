// Strategies from shared libraries: they decide which replica takes which rows, and an impossible answer is refused by
// their name.
#include "strategy/stream_world.hpp"
#include "support/catch.hpp"
#include "support/places.hpp"

using namespace troupe;
using namespace troupe::test;
using Catch::Contains;

namespace {

std::shared_ptr<const strategy_library> plugin(const std::string& name) {
  return strategy_library::open(test_plugins() + "/" + name + ".so");
}

machine_options options_of(std::shared_ptr<const strategy_library> strategy, size_t replicas, int64_t micro_batch) {
  return {.replicas = std::vector<replica_figures>(replicas, {.row_seconds = 1e-3}),
          .how = distribution::plug_in,
          .plugin = std::move(strategy),
          .depth = 1,
          .micro_batch = micro_batch};
}

machine_options options_with(const std::string& name, size_t replicas = 3, int64_t micro_batch = 0) {
  return options_of(plugin(name), replicas, micro_batch);
}

std::string refusal(const std::string& name, const stream_request& request = rows_of_key(6)) {
  stream_world world(options_with(name, 2));
  const auto id = world.submit(request);
  world.run();
  return world.answer_to(*id).what.why.message;
}

} // namespace

TEST_CASE("a strategy plug-in decides which replica takes which rows", "[strategy][schedules][C10]") {
  stream_world world(options_with("strategy_last_free"));
  const auto id = world.submit(rows_of_key(7));
  world.run_until(1e-4);
  std::vector<std::pair<size_t, int64_t>> begun;
  for (const auto& p : world.started())
    begun.emplace_back(p.what.replica, p.rows);
  CHECK(begun == std::vector<std::pair<size_t, int64_t>>{{2, 2}, {1, 2}, {0, 2}});
  world.run();
  CHECK_FALSE(world.answer_to(*id).what.why.failed());
  CHECK(world.rows_by_replica(*id) == std::vector<int64_t>{3, 2, 2}); // the first to end is free alone
}

TEST_CASE("a strategy plug-in is offered micro-batches, and requests that stay whole", "[strategy][schedules][C10]") {
  stream_world world(options_with("strategy_last_free", 2, 1));
  const auto cut = world.submit(rows_of_key(3)), whole = world.submit(one_piece(5));
  world.run();
  for (const auto& p : world.started())
    CHECK(p.rows == (p.what.parts[0].request == *cut ? 1 : 5));
  CHECK_FALSE(world.answer_to(*whole).what.why.failed());
}

TEST_CASE("a strategy plug-in has a state for each stream, and may wait", "[strategy][schedules][C10]") {
  const machine_options options = options_with("strategy_hesitates", 1);
  stream_world one(options), other(options);
  const auto first = one.submit(one_piece());
  CHECK(one.started().empty());
  other.submit(one_piece());
  CHECK(other.started().empty()); // its own first call
  one.run();
  CHECK(one.started().at(0).time == Approx(1e-3).margin(1e-6));
  CHECK_FALSE(one.answer_to(*first).what.why.failed());
}

TEST_CASE("a strategy plug-in shares requests out, lost replicas aside", "[strategy][schedules][C10][C5]") {
  stream_world world(options_with("strategy_all_to_last"));
  const auto before = world.submit(rows_of_key(4));
  world.run();
  CHECK(world.rows_by_replica(*before) == std::vector<int64_t>{0, 0, 4});
  world.lose(2);
  const auto after = world.submit(rows_of_key(4));
  world.run();
  CHECK(world.rows_by_replica(*after) == std::vector<int64_t>{0, 4, 0});
}

TEST_CASE("a strategy plug-in's wrong answer ends what waits, by its name", "[strategy][schedules][E5]") {
  CHECK_THAT(refusal("strategy_throws"),
             Contains("the strategy plug-in 'throws'") && Contains("threw an exception (out of ideas)"));
  CHECK_THAT(refusal("strategy_reports"), Contains("failed: the moon is full"));
  CHECK_THAT(refusal("strategy_gives_no_reason"), Contains("failed: status 7, and no reason given"));
  CHECK_THAT(refusal("strategy_no_such_replica"), Contains("chose replica 2, and there are only 2"));
  CHECK_THAT(refusal("strategy_too_many_rows"), Contains("gave replica 0 7 of 6 rows"));
  CHECK_THAT(refusal("strategy_never"), Contains("would wait for ever"));
  CHECK_THAT(refusal("strategy_waits_backwards"), Contains("asked again after -1 s"));
  CHECK_THAT(refusal("strategy_forgets_one"), Contains("gave no replica 1 of a request's 6 rows"));
  CHECK_THAT(refusal("strategy_one_more"), Contains("gave replica 0 7 rows, and 6 of 6 were left"));
}

TEST_CASE("a strategy plug-in may choose only replicas that are there and free", "[strategy][schedules][E5]") {
  stream_world busy(options_with("strategy_first_always", 2));
  const auto first = busy.submit(one_piece()), second = busy.submit(one_piece());
  busy.run();
  CHECK_THAT(busy.answer_to(*second).what.why.message, Contains("chose replica 0, which is not free"));
  CHECK_THAT(busy.answer_to(*first).what.why.message, Contains("not free")); // its other answers are not trusted either
  for (const char* name : {"strategy_first_always", "strategy_all_to_first"}) {
    stream_world lost(options_with(name, 2));
    lost.lose(0);
    const auto id = lost.submit(rows_of_key(2));
    lost.run();
    CHECK_THAT(lost.answer_to(*id).what.why.message, Contains("replica 0, which is lost"));
  }
}

TEST_CASE("a file that is not a strategy plug-in of this version is refused by its name", "[strategy][schedules][E5]") {
  CHECK_THROWS_WITH(plugin("strategy_other_version"), Contains("is for version 0 of the interface"));
  CHECK_THROWS_WITH(plugin("strategy_no_choice"), Contains("has no function that chooses"));
  CHECK_THROWS_WITH(plugin("last_device"),
                    Contains("is not a strategy plug-in: it exports no function 'troupe_strategy'"));
  CHECK_THROWS_WITH(plugin("none"), Contains("the strategy plug-in") && Contains("is not a file"));
}

TEST_CASE("the example's strategy wakes as few replicas as the load needs", "[strategy][schedules][C10]") {
  const auto used = [](double seconds_between) {
    stream_world world(options_with("my_strategy"));
    for (int i = 0; i < 60; ++i) {
      world.run_until(i * seconds_between);
      world.submit(one_piece());
    }
    world.run();
    std::vector<int> pieces(3);
    for (const auto& p : world.started())
      ++pieces[p.what.replica];
    for (const auto& answer : world.answers())
      CHECK_FALSE(answer.what.why.failed());
    return pieces;
  };
  CHECK(used(2e-3) == std::vector<int>{60, 0, 0});
  const std::vector<int> loaded = used(0.6e-3);
  CHECK(loaded[1] > 10);
  CHECK(loaded[2] == 0);
  CHECK(used(0.3e-3)[2] > 10);
}

TEST_CASE("a function of the program is a strategy with a state for each stream", "[strategy][schedules][C10]") {
  const auto in_turns = [](uint32_t replicas) {
    return [replicas, turn = 0U](const strategy_stream* s, const strategy_offer*, strategy_answer* a) mutable {
      if (s->replicas[turn % replicas].flags & strategy_replica_free)
        a->replica = turn++ % replicas;
      return 0;
    };
  };
  std::optional<own_strategy> mine;
  mine.emplace("mine", in_turns);
  const std::string handle = mine->handle();
  const machine_options options = options_of(strategy_library::open(handle), 3, 0);
  mine.reset();
  CHECK_THROWS_WITH(strategy_library::open(handle), Contains("no strategy '" + handle + "' any more"));
  for (int stream = 0; stream < 2; ++stream) {
    stream_world world(options); // who has it keeps it
    for (int i = 0; i < 4; ++i)
      world.submit(one_piece());
    world.run();
    std::vector<size_t> begun;
    for (const auto& p : world.started())
      begun.push_back(p.what.replica);
    CHECK(begun == std::vector<size_t>{0, 1, 2, 0});
  }
}

TEST_CASE("a function of the program may throw, and must be a strategy", "[strategy][schedules][E5]") {
  const auto refused = [](const own_strategy& strategy) {
    stream_world world(options_of(strategy_library::open(strategy.handle()), 2, 0));
    const auto id = world.submit(one_piece());
    world.run();
    return world.answer_to(*id).what.why.message;
  };
  const auto opens = [](own_strategy::chooser choose) {
    return own_strategy("mine", [choose = std::move(choose)](uint32_t) { return choose; });
  };
  CHECK_THAT(refused(opens([](auto...) -> int32_t { throw std::runtime_error("out of ideas"); })),
             Contains("the strategy 'mine'") && Contains("out of ideas"));
  CHECK_THROWS_WITH(refused(opens(nullptr)), Contains("the strategy 'mine' opened a stream without a function"));
  CHECK_THROWS_WITH(
      refused(own_strategy("mine", [](uint32_t) -> own_strategy::chooser { throw std::runtime_error("no state"); })),
      Contains("the strategy 'mine'") && Contains("no state"));
  for (const char* name : {"", "my strategy"})
    CHECK_THROWS_WITH(own_strategy(name, [](uint32_t) { return own_strategy::chooser(); }),
                      Contains("a strategy cannot be called"));
  CHECK_THROWS_WITH(own_strategy("empty", nullptr), Contains("has no function that opens a stream"));
}
