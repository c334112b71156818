// Runs that wait for memory, under CAF's testing scheduler: a run that leaves the queue or the devices wakes those
// after.
#include "support/catch.hpp"
#include "support/deterministic_system.hpp"
#include "support/small_models.hpp"

using namespace std::chrono_literals;
using namespace troupe;
using namespace troupe::actors;
using namespace troupe::test;

namespace {

named_tensors ones(const shape& dims) {
  return {{"x", floats(dims, std::vector<float>(static_cast<size_t>(volume(dims)), 1))}};
}

/// Returns the bytes of one arena slot of a model with these dims on the first of `devices` devices.
int64_t slot_bytes_of(const graph& model, size_t devices, const session_options& how, const shape& dims) {
  deterministic_session s(model, devices, how);
  auto result = s.run(ones(dims));
  s.settle();
  const int64_t needed = slot_bytes(*s.log(0).installs.at(0).bound->layout, 0);
  s.complete_all();
  result.get();
  return needed;
}

struct sent_run {
  run_request_ptr request;
  std::future<run_result> result;
};

sent_run send_run(deterministic_session& s, const shape& dims) {
  auto pending = std::make_unique<pending_run>(ones(dims), run_options{});
  sent_run sent{pending->request, pending->result.future()};
  caf::anon_send(s.coordinator(), actors::run(std::move(pending)));
  s.settle();
  return sent;
}

/// x [n, 1024] → Sigmoid, and Relu: round-robin placement puts each on another device.
graph two_ways() {
  graph_builder b;
  const value_id x = b.input("x", {dim::symbol("n"), 1024});
  b.output(b.op("Sigmoid", {x}));
  b.output(b.op("Relu", {x}));
  return b.g;
}

const chunk_result no_memory{.code = errc::out_of_memory, .message = "no room"};

} // namespace

TEST_CASE("a run that leaves the memory queue wakes those after it", "[actors][B2]") {
  const graph model = chain(2, {dim::symbol("n"), 1024});
  const int64_t needed = slot_bytes_of(model, 1, {}, {2, 1024});
  const bool cancelled = GENERATE(false, true);
  deterministic_session s(model, 1, {}, 0ms, completion_mode::device, 3 * needed);
  auto first = s.run(ones({2, 1024}));
  s.settle();
  auto large = s.run(ones({5, 1024}), {.timeout = 50ms});
  s.settle();
  const uint64_t ticket = s.last_ticket();
  auto small = s.run(ones({2, 1024}));
  s.settle();
  REQUIRE(s.chunks_waiting() == 1); // the small one would fit, but does not pass
  if (cancelled)
    caf::anon_send(s.coordinator(), cancel_run{ticket});
  s.advance(50ms);
  CHECK(error_of(large).code() == (cancelled ? errc::cancelled : errc::timeout));
  CHECK(s.chunks_waiting() == 2);
  s.complete_all();
  CHECK(small.get().outputs.size() == 1);
  CHECK(first.get().outputs.size() == 1);
}

TEST_CASE("a front of the memory queue that fails to start leaves nobody waiting for ever", "[actors][B2]") {
  const graph model = two_ways();
  const session_options alternating{.policy = placement_policy::round_robin, .fuse = false};
  const int64_t needed = slot_bytes_of(model, 2, alternating, {2, 1024});
  deterministic_session s(model, 2, alternating, 0ms, completion_mode::device, 3 * needed);
  std::future<run_result> other_result = send_run(s, {2, 1024}).result, result = send_run(s, {2, 1024}).result;
  const run_request_ptr front = send_run(s, {4, 1024}).request;
  REQUIRE(s.log(0).chunks.size() == 2); // the third run waits
  const chunk_work on_d0 = s.log(0).chunks[1], on_d1 = s.log(1).chunks[1];
  s.log(0).chunks.erase(s.log(0).chunks.begin() + 1);
  s.log(1).chunks.erase(s.log(1).chunks.begin() + 1);
  s.send({on_d0.execution, on_d0.chunk, no_memory}); // waits after the front; its other chunk is still on d1
  s.complete(0);
  s.complete(1);
  REQUIRE(is_ready(other_result));
  REQUIRE(s.chunks_waiting() == 0); // the front waits for memory that the chunk holds
  front->inputs.clear();            // it cannot start any more
  s.send({on_d1.execution, on_d1.chunk, {.code = errc::cancelled, .message = "dropped"}});
  s.complete_all();
  REQUIRE(is_ready(result));
  CHECK(result.get().outputs.size() == 2);
}

TEST_CASE("the plan that a run reserves memory for stays when idle plans go", "[actors][B2][A10]") {
  const graph model = chain(2, {dim::symbol("n"), 1024});
  const int64_t needed = slot_bytes_of(model, 1, {}, {20, 1024});
  deterministic_session s(model, 1, {}, 0ms, completion_mode::device, 2 * needed + needed / 2);
  const auto run = [&](int64_t n) {
    auto result = s.run(ones({n, 1024}));
    s.settle();
    return result;
  };
  for (const int64_t n : {17, 18, 17}) { // 18 gets a layout for up to 20, and was used longest ago then
    auto result = run(n);
    s.complete_all();
    result.get();
  }
  auto holds_slot = run(19);
  auto wants_slot = run(18); // fits when the plan for 17 goes
  CHECK(s.chunks_waiting() == 2);
  s.complete_all();
  holds_slot.get();
  wants_slot.get();
  auto again = run(18);
  s.complete_all();
  again.get();
  std::vector<int64_t> installed;
  for (const install_plan& i : s.log(0).installs)
    installed.push_back(i.bound->dims[i.bound->source->program->inputs[0]][0]);
  CHECK(installed == std::vector<int64_t>{17, 18, 19});
  CHECK(s.log(0).retired == std::vector<uint64_t>{s.log(0).installs[0].bound->id});
}
