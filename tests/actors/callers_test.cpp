// Callers are answered whatever has become of the actors: if there is no result, by an error.
#include "actors/row_models.hpp"
#include "support/bound_values.hpp"

#include <future>
#include <thread>

using namespace std::chrono_literals;
using namespace troupe;
using namespace troupe::test;

namespace {

/// Returns the error that a call throws, on a thread of its own that may hang for ever; fails the test if it hangs.
template <class Call>
error end_of(Call call) {
  std::promise<error> ended;
  std::future<error> end = ended.get_future();
  std::thread([call = std::move(call), ended = std::move(ended)]() mutable {
    ended.set_value(thrown_by(call));
  }).detach();
  REQUIRE(end.wait_for(30s) == std::future_status::ready);
  return end.get();
}

} // namespace

TEST_CASE("a session whose engine is closed answers with an error", "[actors][C11]") {
  auto e = std::make_unique<engine>(engine_of({reference("a")}));
  const session plain = e->load(summing_model({2, 2}));
  const session queued = e->load(rows_apart(), {.strategy = strategy::work_stealing});
  const tensor four = filled({2, 2}, 1.f);
  const auto bound = std::make_shared<bound_session>(plain.bind({{"next", "state"}}));
  bound->run({{"x", four}, {"state", four}});
  const tensor rows = filled({2, 4}, 1.f);
  queued.submit({{"x", rows}}).get();
  e.reset();
  const auto is_cancelled = [](auto call) { return end_of(std::move(call)).code() == errc::cancelled; };
  CHECK(is_cancelled([=] { bound->run({{"x", four}}); }));
  CHECK(is_cancelled([=] { queued.queue_stats(); }));
  CHECK(is_cancelled([=] { plain.run({{"x", four}, {"state", four}}); }));
  CHECK(is_cancelled([=] { plain.stats(); }));
  CHECK(is_cancelled([=] { plain.plan({{"x", four}, {"state", four}}); }));
  CHECK(is_cancelled([=] { queued.submit({{"x", rows}}).get(); }));
}

TEST_CASE("a request that cannot be taken in is answered, and harms no other", "[actors][strategy][C11]") {
  engine e = engine_of({reference("a"), reference("b")});
  const session s = e.load(rows_apart(), {.strategy = strategy::work_stealing});
  const named_tensors x{{"x", filled({2, 4}, 1.f)}};
  std::promise<run_outcome> inner;
  // A callback does not wait for a place in the queue: the queue's actor is the first that looks at the request.
  s.submit(x, {}, [&](const run_outcome&) {
    s.submit(x, {.timeout = -1ms}, [&](run_outcome o) { inner.set_value(std::move(o)); });
  });
  std::future<run_outcome> refused = inner.get_future();
  REQUIRE(refused.wait_for(30s) == std::future_status::ready);
  const run_outcome outcome = refused.get();
  REQUIRE(outcome.failure);
  CHECK(outcome.failure->code() == errc::invalid_argument);
  CHECK(std::string(outcome.failure->what()).find("run_options::timeout") != std::string::npos);
  CHECK(s.submit(x).get().outputs.size() == 1);
  CHECK(s.queue_stats().answered >= 2);
}
