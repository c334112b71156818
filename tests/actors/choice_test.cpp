// Sessions whose strategy is chosen for their first request.
#include "actors/row_models.hpp"
#include "support/small_models.hpp"

using Catch::Contains;
using namespace troupe;
using namespace troupe::test;

TEST_CASE("a session chooses its strategy for its first request, once", "[strategy][C10]") {
  engine e = references(2);
  const session plain = e.load(rows_apart());
  CHECK_FALSE(plain.choice());
  for (const objective goal : {objective::latency, objective::throughput}) {
    const session s = e.load(rows_apart(), {.strategy = strategy::automatic, .choice = {.goal = goal}});
    CHECK_FALSE(s.choice());
    CHECK(s.stats().runs == 0);
    CHECK(s.queue_stats().answered == 0);
    for (const int64_t rows : {64, 1, 7}) {
      const tensor x = random_tensor({rows, 4}, static_cast<uint64_t>(rows));
      CHECK(same(y_of(s.run({{"x", x}})), y_of(plain.run({{"x", x}}))));
      CHECK(same(y_of(s.submit({{"x", x}}).get()), y_of(plain.run({{"x", x}}))));
    }
    REQUIRE(s.choice());
    CHECK(s.choice()->possible);
    const auto all = s.compare({{"x", random_tensor({64, 4}, 1)}});
    CHECK(all.size() == 10);
    CHECK(s.choice()->strategy == all[0].strategy);
    CHECK(s.choice()->devices == all[0].devices);
    CHECK(s.stats().runs > 0);
    CHECK_THAT(s.plan({{"x", random_tensor({64, 4}, 1)}}), Contains("ref0"));
  }
}

TEST_CASE("callbacks and bound sessions go by the choice, too", "[strategy][C10]") {
  engine e = references(2);
  call_model m;
  const value_id state = m.input("state", {batch, 4});
  m.output(m.op("Add", {state, m.input("x", {batch, 4})}, {}, "next"));
  const session s = e.load(m.g, {.strategy = strategy::automatic});
  bound_session bound = s.bind({{"next", "state"}}); // nothing is known of its requests
  const tensor one = random_tensor({3, 4}, 1);
  bound.run({{"state", one}, {"x", one}});
  bound.run({{"x", one}});
  CHECK(bound.fetch("next").values<float>()[5] == Approx(3 * one.values<float>()[5]));
  std::promise<run_outcome> told;
  s.run_async({{"state", one}, {"x", one}}, {}, [&](run_outcome o) { told.set_value(std::move(o)); });
  const run_outcome o = told.get_future().get();
  REQUIRE_FALSE(o.failure);
  CHECK(o.result.outputs.at("next").values<float>()[5] == Approx(2 * one.values<float>()[5]));
}

TEST_CASE("a request that cannot be leaves the choice to the next", "[strategy][C10]") {
  engine e = references(2);
  const session s = e.load(rows_apart(), {.strategy = strategy::automatic});
  auto wrong = s.run_async({{"x", random_tensor({2, 5}, 1)}});
  CHECK(thrown_by([&] { wrong.get(); }).code() == errc::invalid_input);
  std::promise<run_outcome> told;
  s.submit({}, {}, [&](run_outcome o) { told.set_value(std::move(o)); });
  CHECK(told.get_future().get().failure->code() == errc::invalid_input);
  CHECK_FALSE(s.choice());
  CHECK(thrown_by([&] { s.compare({}); }).code() == errc::invalid_input);
  CHECK(y_of(s.run({{"x", random_tensor({2, 4}, 1)}})).dims() == shape{2, 3});
  CHECK(s.choice());
  const session limited = e.load(rows_apart(), {.strategy = strategy::automatic, .choice = {.max_memory = 1}});
  const error why = thrown_by([&] { limited.run({{"x", random_tensor({2, 4}, 1)}}); });
  CHECK(why.code() == errc::invalid_argument);
  CHECK_THAT(why.what(), Contains("132 bytes are more than 1); the nearest is"));
}
