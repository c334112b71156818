// What one session may have on a worker: each thing is counted until it is given back.
#include "remote/session_budget.hpp"
#include "support/catch.hpp"
#include "support/thrown.hpp"

#include <functional>

using namespace troupe;
using namespace troupe::remote;
using Catch::Contains;

namespace {

constexpr session_limits small{.installs = 3,
                               .chunks = 3,
                               .questions = 3,
                               .plans = 3,
                               .plan_bytes = 300,
                               .bound_plans = 3,
                               .kept_values = 3,
                               .peer_addresses = 3};

install install_of(uint64_t plan, uint64_t bound_plan, int64_t bytes = 100) {
  return {.plan = plan, .encoded = {.size = bytes}, .bound_plan = bound_plan};
}

/// Checks that three of a kind are taken and no fourth, and that one more is after `undo`.
void three_of(
    const std::string& what, const std::function<message(uint64_t)>& ask,
    const std::function<void(session_budget&, uint64_t)>& undo,
    const std::function<void(session_budget&, uint64_t)>& after = [](session_budget&, uint64_t) {}) {
  session_budget budget(small);
  for (uint64_t i = 1; i <= 3; ++i) {
    CHECK_NOTHROW(budget.take(ask(i)));
    after(budget, i);
  }
  const error refused = test::thrown_by([&] { budget.take(ask(4)); });
  CHECK(refused.code() == errc::invalid_input);
  CHECK_THAT(refused.what(), Contains(what));
  session_budget again(small);
  for (uint64_t i = 1; i <= 10; ++i) {
    again.take(ask(i));
    after(again, i);
    undo(again, i);
  }
}

void install_ended(session_budget& budget, uint64_t bound_plan) {
  budget.give_back(installed{.bound_plan = bound_plan});
}

} // namespace

TEST_CASE("a session has so many of each thing on a worker, and no more", "[remote][D2]") {
  three_of(
      "installs", [](uint64_t i) { return install_of(1, i % 2); }, install_ended);
  three_of(
      "chunks", [](uint64_t) { return run_chunk{}; }, [](session_budget& b, uint64_t) { b.give_back(chunk_made{}); });
  three_of(
      "questions", [](uint64_t) { return fetch_kept{}; }, [](session_budget& b, uint64_t) { b.give_back(fetched{}); });
  three_of(
      "questions", [](uint64_t) { return put_value{}; }, [](session_budget& b, uint64_t) { b.give_back(was_put{}); });
  three_of(
      "questions", [](uint64_t) { return ask_stats{}; },
      [](session_budget& b, uint64_t) { b.give_back(stats_told{}); });
  three_of(
      "plans", [](uint64_t i) { return install_of(i, 1, 10); },
      [](session_budget& b, uint64_t i) { b.take(forget_plan{i}); }, install_ended);
  three_of(
      "bound plans", [](uint64_t i) { return install_of(1, i); },
      [](session_budget& b, uint64_t i) { b.take(retire{.device = 0, .bound_plan = i}); }, install_ended);
  three_of(
      "bound plans", [](uint64_t i) { return install_of(1, i); },
      [](session_budget& b, uint64_t i) {
        b.give_back(installed{.bound_plan = i, .why = {errc::out_of_memory, "no room"}});
      },
      [](session_budget& b, uint64_t) { b.give_back(installed{.bound_plan = 99}); });
}

TEST_CASE("bytes of plans, addresses and kept values of a session are limited", "[remote][D2]") {
  session_budget budget(small);
  budget.take(install_of(1, 1, 200));
  CHECK_THAT(test::thrown_by([&] { budget.take(install_of(2, 2, 101)); }).what(), Contains("bytes of plans"));
  CHECK_THAT(test::thrown_by([&] { budget.take(install_of(2, 2, -1)); }).what(), Contains("cannot be"));
  session_budget again(small);
  for (uint64_t i = 1; i <= 5; ++i) {
    again.take(install_of(i, 1, 300));
    again.give_back(installed{.bound_plan = 1});
    again.take(forget_plan{i});
  }

  session_budget named(small);
  run_chunk order;
  for (const char* address : {"a:1", "b:1", "a:1"})
    order.uploads.push_back({.from = origin::peer, .peer = address});
  named.take(order);
  named.take(weight_source{.peer = "c:1"});
  named.take(weight_source{}); // the session's process
  CHECK_THAT(test::thrown_by([&] { named.take(weight_source{.peer = "d:1"}); }).what(), Contains("addresses"));
  CHECK_THAT(test::thrown_by([&] { named.take(weight_source{.peer = std::string(301, 'a')}); }).what(),
             Contains("301 bytes"));

  CHECK_NOTHROW(named.check_kept(2));
  CHECK_THAT(test::thrown_by([&] { named.check_kept(3); }).what(), Contains("kept values"));
}
