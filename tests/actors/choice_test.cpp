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
    CHECK(all.size() == 11);
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

TEST_CASE("an invalid request leaves the choice to the next", "[strategy][C10]") {
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

namespace {

/// Submits a request of `rows` rows and compares its answer with the reference's.
void submit_one(const session& to, const session& plain, int64_t rows) {
  const tensor x = random_tensor({rows, 4}, static_cast<uint64_t>(rows));
  CHECK(same(y_of(to.submit({{"x", x}}).get()), y_of(plain.run({{"x", x}}))));
}

/// Submits requests until the session has chosen a strategy for its queue.
void submit_until_chosen(const session& to, const session& plain) {
  for (const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
       !to.choice() && std::chrono::steady_clock::now() < end;)
    submit_one(to, plain, 8);
  REQUIRE(to.choice());
}

} // namespace

TEST_CASE("requests that are submitted are served as is best, and none waits for the choice", "[strategy][C10]") {
  engine e = references(2);
  const session plain = e.load(rows_apart(), {.strategy = strategy::none});
  const session s = e.load(rows_apart());
  submit_one(s, plain, 64);
  submit_until_chosen(s, plain);
  CHECK(s.choice()->strategy == strategy::data_parallel);
  CHECK(s.choice()->devices == std::vector<std::string>{"ref0", "ref1"});
  const stream_stats before = s.queue_stats();
  REQUIRE(before.replicas.size() >= 1);
  CHECK(before.replicas[0].pieces > 0); // the one plan
  std::vector<std::future<run_result>> flying;
  for (int i = 0; i < 16; ++i)
    flying.push_back(s.submit({{"x", random_tensor({64, 4}, 1)}}));
  for (auto& f : flying)
    f.get();
  const stream_stats after = s.queue_stats();
  CHECK(after.answered == before.answered + 16);
  CHECK(after.rows == "batch");
  REQUIRE(after.replicas.size() == 3);
  CHECK(after.replicas[0].pieces == before.replicas[0].pieces);
  CHECK(after.replicas[1].rows > 0);
  CHECK(after.replicas[2].rows > 0);
  const uint64_t runs = s.stats().runs;
  s.run({{"x", random_tensor({64, 4}, 1)}}); // by the one plan
  CHECK(s.stats().runs == runs + 1);
}

TEST_CASE("a session has nothing to choose for its queue if the caller decides where nodes run", "[strategy][C10]") {
  engine two = references(2), one = references(1);
  const std::vector<session> all{
      one.load(rows_apart()),
      two.load(rows_apart(), {.devices = {"ref1"}}),
      two.load(rows_apart(), {.policy = placement_policy::heft}),
      two.load(rows_apart(), {.strategy = strategy::none}),
      two.load(rows_apart(), {.stream = {.ordered = true}}),
      two.load(rows_apart(), {.pins = {{"*", "ref1"}}}),
      two.load(rows_apart(), {.dims = {{"batch", 8}}}),
  };
  for (const session& s : all) {
    s.prepare({{"x", random_tensor({8, 4}, 1)}}); // would wait for the choice
    s.submit({{"x", random_tensor({8, 4}, 1)}}).get();
    CHECK_FALSE(s.choice());
    CHECK(s.queue_stats().replicas.size() == 1);
  }
}

TEST_CASE("a wrong request does not spoil the choice for a queue", "[strategy][C10]") {
  engine e = references(2);
  const session plain = e.load(rows_apart(), {.strategy = strategy::none});
  const session s = e.load(rows_apart());
  for (int i = 0; i < 3; ++i) {
    auto wrong = s.submit({{"x", random_tensor({2, 5}, 1)}});
    CHECK(thrown_by([&] { wrong.get(); }).code() == errc::invalid_input);
  }
  submit_until_chosen(s, plain);
}

TEST_CASE("a preparation prepares the replicas of the queue, too", "[strategy][C10]") {
  engine e = references(2);
  const session plain = e.load(rows_apart(), {.strategy = strategy::none});
  const session s = e.load(rows_apart());
  const tensor x = random_tensor({64, 4}, 1);
  s.prepare({{"x", x}});
  REQUIRE(s.choice());
  const uint64_t made = s.stats().bound_plans.misses;
  submit_one(s, plain, 64);
  CHECK(s.stats().bound_plans.misses == made);
  const stream_stats queue = s.queue_stats();
  CHECK(queue.answered == 1);
  CHECK(queue.replicas.size() == 2); // nothing went by the one plan
}
