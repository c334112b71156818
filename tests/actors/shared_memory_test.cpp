// Sessions that share devices keep their limits together, under CAF's testing scheduler.
#include "support/catch.hpp"
#include "support/deterministic_system.hpp"
#include "support/small_models.hpp"

using namespace std::chrono_literals;
using namespace troupe;
using namespace troupe::actors;
using namespace troupe::test;

namespace {

named_tensors ones(int64_t n) {
  return {{"x", floats({n, 1024}, std::vector<float>(static_cast<size_t>(n * 1024), 1))}};
}

graph wide_chain() {
  return chain(2, {dim::symbol("n"), 1024});
}

int64_t slot_of(int64_t n) {
  deterministic_session s(wide_chain(), 1);
  auto result = s.run(ones(n));
  s.settle();
  const int64_t bytes = slot_bytes(*s.log(0).installs.at(0).bound->layout, 0);
  s.complete_all();
  result.get();
  return bytes;
}

/// Two sessions of one model on one device that has memory for executions of `rows` rows together.
struct two_sessions {
  explicit two_sessions(int64_t rows)
      : s(wide_chain(), 1, {}, 0ms, completion_mode::device, rows * slot_of(1)), other(s.open_session(wide_chain())) {}

  deterministic_session s;
  coordinator_ref other;

  std::future<run_result> first(int64_t n, const run_options& options = {}) { return settled(s.run(ones(n), options)); }
  std::future<run_result> second(int64_t n, const run_options& options = {}) {
    return settled(s.run_in(other, ones(n), options));
  }

private:
  std::future<run_result> settled(std::future<run_result> result) {
    s.settle();
    return result;
  }
};

} // namespace

TEST_CASE("sessions on one device keep its limit together", "[actors][B2]") {
  two_sessions t(6);
  auto a = t.first(2), b = t.first(2), c = t.second(6);
  CHECK(t.s.chunks_waiting() == 2); // the other session's run waits for memory …
  auto d = t.first(2);
  CHECK(t.s.chunks_waiting() == 2); // … and is not passed
  t.s.complete(0);
  t.s.complete(0);
  REQUIRE(is_ready(a));
  REQUIRE(is_ready(b));
  REQUIRE(t.s.chunks_waiting() == 1);
  CHECK(t.s.log(0).retired == std::vector<uint64_t>{t.s.log(0).installs[0].bound->id}); // before the other's install
  t.s.complete_all();
  CHECK(c.get().outputs.size() == 1);
  CHECK(d.get().outputs.size() == 1);
}

TEST_CASE("plans that nobody runs make room for another session, least recently used first", "[actors][B2]") {
  two_sessions t(60);
  for (const int64_t n : {17, 18}) { // the second gets a layout for up to 20
    auto result = t.first(n);
    t.s.complete_all();
    result.get();
  }
  auto result = t.second(30);
  CHECK(t.s.chunks_waiting() == 1);
  CHECK(t.s.log(0).retired == std::vector<uint64_t>{t.s.log(0).installs[0].bound->id}); // the second one stays
  t.s.complete_all();
  result.get();
}

TEST_CASE("a run that waits for another session's memory ends by deadline or by cancelling, and lets others go on",
          "[actors][B2][A13]") {
  two_sessions t(6);
  auto a = t.first(2), b = t.first(2);
  const bool cancelled = GENERATE(false, true);
  auto large = t.second(4, {.timeout = 50ms});
  const uint64_t ticket = t.s.last_ticket();
  auto small = t.first(2);
  REQUIRE(t.s.chunks_waiting() == 2);
  if (cancelled)
    caf::anon_send(t.other, cancel_run{ticket});
  t.s.advance(50ms);
  CHECK(error_of(large).code() == (cancelled ? errc::cancelled : errc::timeout));
  CHECK(t.s.chunks_waiting() == 3);
  t.s.complete_all();
  small.get();
}

TEST_CASE("a session that ends gives its memory to those that wait", "[actors][B2]") {
  two_sessions t(6);
  auto a = t.first(2), b = t.first(2), c = t.second(4);
  REQUIRE(t.s.chunks_waiting() == 2);
  caf::anon_send_exit(t.s.coordinator(), caf::exit_reason::kill);
  t.s.settle();
  CHECK(error_of(a).code() == errc::cancelled);
  CHECK(t.s.chunks_waiting() == 3);
}
