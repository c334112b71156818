// Loops that change the rank of what they carry, from call to result.
#include "actors/engine_access.hpp"
#include "support/bound_values.hpp"
#include "support/catch.hpp"
#include "support/rank_loops.hpp"

using namespace std::chrono_literals;
using namespace troupe;
using namespace troupe::test;

namespace {

/// n times: v gets a dim in front; the outputs are v and all of them.
graph gathered_growth() {
  graph_builder b;
  const value_id n = b.input("n", {}, dtype::int64), x = b.input("x", {2, 2});
  body_builder body(&b);
  body.input("i", {}, dtype::int64);
  body.output(body.input("go", {}, dtype::boolean));
  const value_id v = body.g.add_value({.name = "v", .type = dtype::float32});
  body.g.inputs.push_back(v);
  const value_id w = body.op("Unsqueeze", {v, body.integers({0})});
  body.output(w);
  body.output(w);
  for (const value_id result : add_control(b, "Loop", "loop", {n, no_value, x}, {{"body", &body}}, 2))
    b.output(result);
  return b.g;
}

void check_fails(const session& s, int64_t n, const std::string& words) {
  refuses([&] { s.run(rank_inputs(n)); }, errc::invalid_input, words);
}

} // namespace

TEST_CASE("loops that change ranks run on every device", "[actors][control][A14]") {
  for (const std::vector<std::string>& devices : std::vector<std::vector<std::string>>{{"cpu"}, {"cpu*2"}}) {
    engine e({.devices = devices});
    for (const placement_policy policy : {placement_policy::single, placement_policy::round_robin})
      check_rank_loops(e, policy);
  }
}

TEST_CASE("more changes of rank than a loop may have end the run", "[actors][control][A14]") {
  engine e({.devices = {"cpu"}});
  const session s = e.load(growing_rank());
  check_fails(s, 17, "then_branch cannot be executed: Loop 'loop': its carried values change their rank in each of");
  CHECK(s.run(rank_inputs(1)).outputs.at("loop.0").dims() == shape{1, 2, 2}); // the session goes on
}

TEST_CASE("values of different ranks are not gathered", "[actors][control][A14]") {
  engine e({.devices = {"cpu"}});
  const session s = e.load(gathered_growth());
  CHECK(s.run(rank_inputs(1)).outputs.at("loop.1").dims() == shape{1, 1, 2, 2});
  CHECK(s.run(rank_inputs(0)).outputs.at("loop.1").size() == 0);
  check_fails(s, 2, "If 'loop[0]': then_branch cannot be executed: Concat 'loop/output_1': ");
}

TEST_CASE("a device that dies in a loop that changes ranks costs a re-run", "[actors][control][A14]") {
  for (const uint64_t at : {0, 1, 2, 3}) {
    engine e(engine_of({reference("bad", {.die_at = at}), reference("good")}, engine_options{}.device_timeout));
    const session s = e.load(broadened_once(), {.policy = placement_policy::round_robin});
    for (const int64_t n : {3, 0}) {
      const tensor y = s.run(rank_inputs(n), {.timeout = 20s}).outputs.at("y");
      CHECK(values_of(y)[1] == static_cast<float>(-1 - n));
    }
  }
}
