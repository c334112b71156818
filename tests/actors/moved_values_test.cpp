// Values on their way between devices: which actor holds them, and for how long. Message by message under CAF's testing
// scheduler.
#include "support/catch.hpp"
#include "support/deterministic_system.hpp"
#include "support/small_models.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

const std::vector<float> ones(6, 1.f);

/// x → Relu on d0 → Sigmoid on d1, and Neg on d2 → Abs on d0; both ends are outputs.
graph shared_value() {
  graph_builder b;
  const value_id shared = b.op("Relu", {b.input("x", {2, 3})}, {}, "shared");
  b.output(b.op("Sigmoid", {shared}, {}, "left"));
  b.output(b.op("Abs", {b.op("Neg", {shared}, {}, "negated")}, {}, "right"));
  return b.g;
}

const session_options placed{.pins = {{"shared", "d0"}, {"left", "d1"}, {"negated", "d2"}, {"right", "d0"}},
                             .fuse = false};

} // namespace

TEST_CASE("a value that two devices read is freed after the last one", "[actors][B4]") {
  deterministic_session s(shared_value(), 3, placed);
  auto result = s.run({{"x", floats({2, 3}, ones)}});
  s.settle();
  auto bytes = std::make_shared<std::vector<float>>(ones);
  const std::weak_ptr<std::vector<float>> watched = bytes;
  chunk_work work = std::move(s.log(0).chunks.at(0));
  s.log(0).chunks.clear();
  const float* data = bytes->data();
  work.downloads.at(0)->fill(tensor(dtype::float32, {2, 3}, std::move(bytes), data));
  work.downloads.clear();
  s.send({work.execution, work.chunk, {}});
  for (size_t device : {1, 2})
    CHECK(s.log(device).chunks.at(0).uploads.at(0)->host().data() == data); // nothing was copied
  s.complete(2);
  CHECK_FALSE(watched.expired());
  s.complete(1);
  CHECK(watched.expired());
  CHECK(s.chunks_waiting() == 1); // while the run goes on
  s.complete_all();
  CHECK(result.get().outputs.size() == 2);
}

TEST_CASE("a late message of a lost device reaches no later attempt", "[actors][C11]") {
  deterministic_session s(chain(2), 2, {.policy = placement_policy::round_robin, .fuse = false});
  auto result = s.run({{"x", floats({2, 3}, ones)}});
  s.settle();
  s.complete(0);
  const chunk_work lost = s.log(1).chunks.at(0);
  s.log(1).chunks.clear();
  s.kill(1);
  lost.downloads.at(0)->fill(floats({2, 3}, ones));
  s.send({lost.execution, lost.chunk, {}});
  s.complete_all();
  const run_result r = result.get();
  for (float f : r.outputs.begin()->second.values<float>())
    CHECK(f == 0);
}
