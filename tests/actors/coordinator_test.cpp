// The coordinator under CAF's testing scheduler: every message comes when the test lets it.
#include "support/catch.hpp"
#include "support/deterministic_system.hpp"
#include "support/small_models.hpp"

#include <set>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::test;

namespace {

const session_options alternating{.policy = placement_policy::round_robin, .fuse = false};

named_tensors one_input(shape dims) {
  tensor t(dtype::float32, dims);
  std::fill_n(t.mutable_data<float>(), t.size(), 1.f);
  return {{"x", t}};
}

chunk_result failing(errc code, const std::string& message) {
  return {.code = code, .message = message};
}

/// x → both halves of it, "low" and "high"; Relu of the high half, then of the low one.
graph halves() {
  graph_builder b;
  const std::vector<value_id> both = b.call("Split", {b.input("x", {4})}, {"low", "high"});
  const value_id of_high = b.op("Relu", {both[1]}, {}, "of high"), of_low = b.op("Relu", {both[0]}, {}, "of low");
  b.g.outputs = {both[0], of_high, of_low};
  return b.g;
}

/// A value that only "d0" can read.
struct distant final : resident {
  explicit distant(shape dims) : resident(dtype::float32, std::move(dims), "d0") {}
};

} // namespace

TEST_CASE("all chunks without a dependency start as one batch, each once", "[actors][A4][A13]") {
  deterministic_session s(fan_out(6, 1), 3, alternating);
  auto result = s.run(one_input({4}));
  s.settle();
  std::set<chunk_id> sent;
  for (size_t d = 0; d < 3; ++d) {
    CHECK(s.log(d).installs.size() == 1);
    CHECK(s.log(d).batches.size() == 1);
    for (const chunk_work& work : s.log(d).chunks)
      CHECK(sent.insert(work.chunk).second);
  }
  s.complete_all();
  CHECK(result.get().outputs.size() == 6);
}

TEST_CASE("a chunk waits for the completion of its predecessor on another device", "[actors][A4][A7]") {
  deterministic_session s(chain(4), 2, alternating);
  auto result = s.run(one_input({2, 3}));
  s.settle();
  for (int step = 0; step < 4; ++step) {
    REQUIRE(s.chunks_waiting() == 1);
    CHECK(s.log(step % 2).chunks.size() == 1);
    CHECK_FALSE(is_ready(result));
    s.complete(step % 2);
  }
  CHECK(result.get().stats.chunks == 4);
}

TEST_CASE("chunks of one device follow each other without waiting, unless asked to", "[actors][A4]") {
  for (const auto mode : {completion_mode::device, completion_mode::host}) {
    // Two devices; each of the six chains has its first node on d0 or d1 and stays apart from the others.
    deterministic_session s(fan_out(6, 1), 2, alternating, std::chrono::milliseconds(0), mode);
    auto result = s.run(one_input({4}));
    s.settle();
    s.complete_all();
    CHECK(result.get().outputs.size() == 6);
  }
}

TEST_CASE("the caller wakes once, when the last output is there", "[actors][A5][A13]") {
  deterministic_session s(fan_out(2, 1), 2, alternating);
  auto result = s.run(one_input({4}));
  s.settle();
  const chunk_work first = s.log(0).chunks.at(0);
  s.complete(0);
  CHECK_FALSE(is_ready(result));
  SECTION("a spurious completion of a chunk that has ended changes nothing") {
    s.send({first.execution, first.chunk, {}});
    CHECK_FALSE(is_ready(result));
  }
  SECTION("a completion of an unknown chunk or execution changes nothing") {
    s.send({first.execution, 12345, {}});
    s.send({first.execution + 1000, 0, {}});
    CHECK_FALSE(is_ready(result));
  }
  s.complete(1);
  REQUIRE(is_ready(result));
  s.send({first.execution, first.chunk, failing(errc::device_failed, "too late")});
  CHECK(result.get().outputs.size() == 2);
}

TEST_CASE("a spurious completion of a chunk that has not been sent releases nothing", "[actors][A5][A13]") {
  deterministic_session s(chain(3), 2, alternating);
  auto result = s.run(one_input({2, 3}));
  s.settle();
  s.send({s.log(0).chunks.at(0).execution, 1, {}});
  CHECK(s.chunks_waiting() == 1);
  s.complete_all();
  CHECK(result.get().outputs.size() == 1);
}

TEST_CASE("a chunk that fails ends its run with one error that names device and node", "[actors][C11][A13]") {
  deterministic_session s(fan_out(4, 1), 2, alternating);
  auto result = s.run(one_input({4}));
  s.settle();
  REQUIRE(s.log(1).chunks.size() == 1);
  const execution_id id = s.log(1).chunks.at(0).execution;
  s.complete(1, failing(errc::device_failed, "no luck"));
  const error e = error_of(result);
  CHECK(e.code() == errc::device_failed);
  CHECK(std::string(e.what()).find("device 'd1' failed in chunk") == 0);
  CHECK(std::string(e.what()).find("Relu") != std::string::npos);
  CHECK(std::string(e.what()).find("no luck") != std::string::npos);
  CHECK(s.log(0).chunks.at(0).stop->load());
  CHECK(s.log(1).ended.empty());
  s.complete(0); // the last answer: now the devices may forget the execution
  CHECK(s.log(1).ended == std::vector{id});
  auto next = s.run(one_input({4}));
  s.settle();
  s.complete_all();
  CHECK(next.get().outputs.size() == 4);
}

TEST_CASE("a chunk that returns the wrong values is an error, not a result", "[actors][C11]") {
  deterministic_session s(chain(1), 1);
  auto result = s.run(one_input({2, 3}));
  s.settle();
  const chunk_work work = s.log(0).chunks.at(0);
  SECTION("no value") {}
  SECTION("another shape") {
    work.downloads.at(0)->fill(floats({3, 2}, {1, 2, 3, 4, 5, 6}));
  }
  SECTION("another type") {
    work.downloads.at(0)->fill(tensor(dtype::int32, shape{2, 3}));
  }
  s.send({work.execution, work.chunk, {}});
  const error e = error_of(result);
  CHECK(e.code() == errc::internal);
  CHECK(std::string(e.what()).find("'d0'") != std::string::npos);
}

TEST_CASE("runs of a lost device are planned again on the devices left", "[actors][C11][A10]") {
  deterministic_session s(chain(4), 2, alternating);
  auto result = s.run(one_input({2, 3}));
  s.settle();
  s.complete(0);
  REQUIRE(s.log(1).chunks.size() == 1);
  const chunk_work lost = s.log(1).chunks.at(0);
  SECTION("its actor dies") {
    s.kill(1);
  }
  SECTION("it says so") {
    s.complete(1, failing(errc::device_lost, "gone"));
  }
  REQUIRE(s.log(0).chunks.size() == 1);
  CHECK(s.log(0).chunks.at(0).execution != lost.execution);
  s.send({lost.execution, lost.chunk, {}}); // a late answer of the old attempt
  CHECK_FALSE(is_ready(result));
  s.complete_all();
  const run_result r = result.get();
  CHECK(r.outputs.size() == 1);
  CHECK(r.stats.lost_devices == std::vector<std::string>{"d1"});
  CHECK(r.stats.chunks == 1);
}

TEST_CASE("a run of a session that is closed starts over on the devices left", "[actors][C11]") {
  deterministic_session s(chain(4), 2, alternating);
  auto result = s.run(one_input({2, 3}));
  s.settle();
  s.complete(0);
  caf::anon_send(s.coordinator(), close_session{});
  s.settle();
  s.kill(1);
  s.complete_all();
  CHECK(result.get().outputs.size() == 1);
  CHECK(s.log(0).retired.size() == 2); // the plan that was bound for both devices, and the one for one
}

TEST_CASE("the loss of every device is one error that names them", "[actors][C11]") {
  deterministic_session s(chain(4), 2, alternating);
  auto result = s.run(one_input({2, 3}));
  s.settle();
  s.complete(0, failing(errc::device_lost, "melted"));
  s.kill(1);
  const error e = error_of(result);
  CHECK(e.code() == errc::device_lost);
  CHECK(std::string(e.what()).find("'d0' is lost: melted") != std::string::npos);
  CHECK(std::string(e.what()).find("'d1'") != std::string::npos);
  auto next = s.run(one_input({2, 3}));
  s.settle();
  CHECK(error_of(next).code() == errc::device_lost);
}

TEST_CASE("a device that cannot install is an error that names it; the next run tries again", "[actors][C11]") {
  deterministic_session s(chain(1), 1);
  s.log(0).install_answer = {errc::out_of_memory, "full"};
  auto result = s.run(one_input({2, 3}));
  s.settle();
  const uint64_t bound = s.log(0).installs.at(0).bound->id;
  s.log(0).install_answer = {};
  const error e = error_of(result);
  CHECK(e.code() == errc::out_of_memory);
  CHECK(std::string(e.what()).find("'d0'") != std::string::npos);
  s.complete(0, failing(errc::internal, "not installed"));
  CHECK(s.log(0).retired == std::vector{bound});
  auto next = s.run(one_input({2, 3}));
  s.settle();
  CHECK(s.log(0).installs.size() == 2);
  s.complete_all();
  CHECK(next.get().outputs.size() == 1);
}

TEST_CASE("a run that fails while its chunks are sent leaves nothing behind for the next", "[actors][C11]") {
  const std::vector<placement_pin> pins{{"low", "d0"}, {"of high", "d1"}, {"of low", "d2"}};
  deterministic_session s(halves(), 3, {.pins = pins, .fuse = false});
  auto result = s.run(one_input({4}), {.keep = {"low"}});
  s.settle();
  const chunk_work work = s.log(0).chunks.at(0);
  s.log(0).chunks.clear();
  // The device keeps the low half, but does not give it to the host as it was told to: d2's chunk lacks its upload.
  work.downloads.at(0)->fill({}, std::make_shared<distant>(shape{2}));
  work.downloads.at(1)->fill(floats({2}, {3, 4}));
  s.send({work.execution, work.chunk, {}});
  CHECK(error_of(result).code() == errc::internal);
  REQUIRE(s.log(1).chunks.size() == 1); // taken before that: so it is sent, for nothing
  CHECK(s.log(1).chunks.at(0).stop->load());
  s.complete(1, failing(errc::cancelled, "dropped"));
  CHECK(s.log(1).ended == std::vector{work.execution});
  auto next = s.run(one_input({4}));
  s.settle();
  s.complete_all();
  CHECK(next.get().outputs.size() == 3);
  CHECK(s.log(1).batches == std::vector<size_t>{1, 1});
  CHECK(s.log(0).installs.size() == 1);
}
