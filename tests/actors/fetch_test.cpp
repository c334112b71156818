// Inputs that come from another device, message by message under CAF's testing scheduler.
#include "support/catch.hpp"
#include "support/deterministic_system.hpp"
#include "support/small_models.hpp"

using namespace std::chrono_literals;
using namespace troupe;
using namespace troupe::actors;
using namespace troupe::test;

namespace {

/// A value that only "d1" can read.
struct distant final : resident {
  explicit distant(shape dims) : resident(dtype::float32, std::move(dims), "d1") {}
};

/// y = a + b, which the single policy runs on "d0".
graph sum() {
  graph_builder b;
  b.output(b.op("Add", {b.input("a", {4}), b.input("b", {4})}));
  return b.g;
}

const tensor four = floats({4}, {1, 2, 3, 4});

run_options both_distant() {
  return {.device_inputs = {{"a", std::make_shared<distant>(shape{4})}, {"b", std::make_shared<distant>(shape{4})}}};
}

} // namespace

TEST_CASE("a run begins when all its values have come", "[actors][B7]") {
  deterministic_session s(sum(), 2);
  auto result = s.run({}, both_distant());
  s.settle();
  REQUIRE(s.log(1).fetches.size() == 2);
  CHECK(s.log(0).installs.empty());
  s.answer_fetch(1, {.value = four});
  CHECK(s.chunks_waiting() == 0);
  s.answer_fetch(1, {.value = four});
  REQUIRE(s.chunks_waiting() == 1);
  CHECK(s.log(0).chunks.at(0).uploads.size() == 2);
  for (const value_ref& upload : s.log(0).chunks.at(0).uploads)
    CHECK(upload->host().data() == four.data());
  s.complete_all();
  CHECK(result.get().stats.fetched_bytes == 32);
}

TEST_CASE("values that come after their run has ended change nothing", "[actors][C11]") {
  deterministic_session s(sum(), 2);
  auto cancelled = s.run({}, both_distant());
  s.settle();
  caf::anon_send(s.coordinator(), cancel_run{s.last_ticket()});
  s.settle();
  CHECK(error_of(cancelled).code() == errc::cancelled);
  s.answer_fetch(1, {.value = four});
  s.answer_fetch(1, {.value = four});
  CHECK(s.chunks_waiting() == 0);
}

TEST_CASE("a value that cannot be given back is one error; a device that dies meanwhile another", "[actors][C11]") {
  deterministic_session s(sum(), 2);
  auto refused = s.run({}, both_distant());
  s.settle();
  s.answer_fetch(1, {.code = errc::out_of_memory, .message = "no room"});
  const error problem = error_of(refused);
  CHECK(problem.code() == errc::out_of_memory);
  CHECK(std::string(problem.what()).find("device 'd1' could not give input 'a' back: no room") != std::string::npos);
  s.answer_fetch(1, {.value = four});
  auto lost = s.run({}, both_distant());
  s.settle();
  s.answer_fetch(1, {.value = four}); // this one is safe on the host
  s.kill(1);
  const error loss = error_of(lost);
  CHECK(loss.code() == errc::device_lost);
  CHECK(std::string(loss.what()).find("input 'b' lay on device 'd1'") != std::string::npos);
  auto other = s.run({{"a", four}, {"b", four}});
  s.settle();
  s.complete_all();
  CHECK(other.get().outputs.size() == 1);
}

TEST_CASE("a session that is closed waits for runs that wait for values", "[actors]") {
  deterministic_session s(sum(), 2);
  auto result = s.run({}, both_distant());
  s.settle();
  caf::anon_send(s.coordinator(), close_session{});
  s.settle();
  s.answer_fetch(1, {.value = four});
  s.answer_fetch(1, {.value = four});
  s.complete_all();
  CHECK(result.get().outputs.size() == 1);
}
