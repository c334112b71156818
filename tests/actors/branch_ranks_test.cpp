// Ifs whose branches give different ranks, from call to result.
#include "actors/engine_access.hpp"
#include "support/bound_values.hpp"
#include "support/branch_models.hpp"
#include "support/branch_runs.hpp"
#include "support/catch.hpp"
#include "support/thrown.hpp"

using namespace std::chrono_literals;
using namespace troupe;
using namespace troupe::test;

TEST_CASE("branches of different ranks run on every device", "[actors][control][A14]") {
  for (const std::vector<std::string>& devices : std::vector<std::vector<std::string>>{{"cpu"}, {"cpu*2"}}) {
    engine e({.devices = devices});
    for (const placement_policy policy : {placement_policy::single, placement_policy::round_robin})
      check_branch_models(e, policy);
  }
}

TEST_CASE("a refused branch ends the run that takes it with one error", "[actors][control][A14]") {
  squeezed_model b;
  b.output(b.op("Gemm", {b.squeezed, b.constant("w", random_tensor({4, 2}, 1))}, {}, "y"));
  engine e({.devices = {"cpu"}});
  const session s = e.load(b.g);
  CHECK(s.run(squeezed_inputs(true)).outputs.at("y").dims() == shape{2, 2});
  const error problem = thrown_by([&] { s.run(squeezed_inputs(false)); });
  INFO(problem.what());
  CHECK(problem.code() == errc::invalid_input);
  CHECK(std::string(problem.what()).find("If 'squeeze': else_branch cannot be executed: Gemm 'Gemm_y': ") == 0);
  CHECK(s.run(squeezed_inputs(true)).outputs.at("y").dims() == shape{2, 2}); // the session goes on
}

TEST_CASE("outputs of different ranks are kept and feed the next run", "[actors][control][A14]") {
  squeezed_model b;
  b.output(b.squeezed);
  engine e({.devices = {"cpu"}});
  const session s = e.load(b.g);
  for (const bool c : {true, false}) {
    const run_result r = s.run(squeezed_inputs(c), {.keep = {"squeeze.0"}});
    CHECK(r.kept.at("squeeze.0")->dims() == (c ? shape{2, 4} : shape{2, 1, 4}));
  }
}

TEST_CASE("a device that dies between branches of different ranks costs a re-run", "[actors][control][A14]") {
  for (uint64_t at : {0, 1, 2, 3}) {
    engine e(engine_of({reference("bad", {.die_at = at}), reference("good")}, engine_options{}.device_timeout));
    const session s = e.load(branch_chain(), {.policy = placement_policy::round_robin});
    for (const bool c : {true, false})
      check_branch_chain(s.run(squeezed_inputs(c), {.timeout = 20s}), c);
  }
}
