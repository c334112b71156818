// A strategy from a shared library, as a program and the command use it.
#include "actors/row_models.hpp"
#include "support/command.hpp"
#include "support/places.hpp"
#include "support/small_models.hpp"

#include <nlohmann/json.hpp>

using namespace troupe;
using namespace troupe::test;
using Catch::Contains;

namespace {

const std::string plugins = test_plugins() + "/";

} // namespace

TEST_CASE("a session follows a strategy plug-in", "[actors][schedules][C10]") {
  engine e = references(3);
  const session alone = e.load(rows_apart());
  const session s = e.load(rows_apart(), {.strategy_plugin = plugins + "strategy_last_free.so"});
  const named_tensors inputs{{"x", random_tensor({7, 4}, 5)}};
  const run_result expected = alone.run(inputs), got = s.run(inputs);
  for (const auto& [name, want] : expected.outputs) {
    const auto is = got.outputs.at(name).values<float>(), should = want.values<float>();
    CHECK(std::equal(is.begin(), is.end(), should.begin(), should.end()));
  }
  uint64_t pieces = 0;
  for (const replica_stats& r : s.queue_stats().replicas)
    pieces += r.pieces;
  CHECK(pieces == 4); // of two rows, and one of one
}

TEST_CASE("a session refuses a strategy plug-in that is wrong, and goes on", "[actors][schedules][E5]") {
  engine e = references(2);
  const named_tensors inputs{{"x", random_tensor({2, 4}, 5)}};
  CHECK_THROWS_WITH(e.load(rows_apart(), {.strategy_plugin = plugins + "none.so"}), Contains("is not a file"));
  CHECK_THROWS_WITH(e.load(rows_apart(), {.strategy = strategy::plug_in}), Contains("none is given"));
  const session s = e.load(rows_apart(), {.strategy_plugin = plugins + "strategy_reports.so"});
  for (int i = 0; i < 2; ++i)
    CHECK_THROWS_WITH(s.run(inputs), Contains("the strategy plug-in 'reports'") && Contains("the moon is full"));
}

TEST_CASE("the strategy of --strategy-plugin is the strategy, real or simulated", "[cli][schedules][C10]") {
  const std::string cnn = data_file("small_cnn.onnx"), mine = " --strategy-plugin " + plugins + "my_strategy.so";
  CHECK(run_command("run " + cnn + " --devices 'cpu*2'" + mine).status == 0);
  const std::string two = " --cluster " + test_data() + "/../../examples/clusters/two_gpus.json";
  const command_result simulated = run_command("simulate " + cnn + two + mine + " --requests 20 --json");
  CHECK(simulated.status == 0);
  const command_result wrong = run_command("run " + cnn + mine + " --strategy pipeline", true);
  CHECK(wrong.status == 2);
  CHECK_THAT(wrong.output, Contains("--strategy-plugin"));
  const command_result refused =
      run_command("run " + cnn + " --strategy-plugin " + plugins + "strategy_throws.so", true);
  CHECK(refused.status != 0);
  CHECK_THAT(refused.output, Contains("the strategy plug-in 'throws'"));
}
