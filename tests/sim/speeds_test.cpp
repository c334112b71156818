// Virtual devices that become slower while requests run: the plan, or the shares, follow.
#include "support/catch.hpp"
#include "support/small_models.hpp"
#include "support/thrown.hpp"
#include "troupe/built_model.hpp"
#include "troupe/simulation.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

/// Two CPUs on which a row of three floats takes 1.25 ms a node, on the second `slower` times as long.
std::string two_cpus(double slower = 1) {
  const auto cpu = [](const char* name, double pace) {
    return fmt::format(R"({{"name": "{}", "kind": "cpu", "memory_bytes": 1000000000, "profile": {{"launch_s": 0, )"
                       R"("chunk_s": 1e-5, "submit_s": 0, "float32": 1e21, "other": 1e21, )"
                       R"("memory_bytes_per_s": {}}}}})",
                       name, 19'200 / pace);
  };
  return fmt::format(R"({{"version": 1, "coordinator_s": 0, "hosts": [{{"devices": [{}, {}]}}]}})", cpu("a", 1),
                     cpu("b", slower));
}

simulation_options requests(size_t count, session_options session, std::string cluster = two_cpus()) {
  session.fuse = false;
  return {.cluster_text = std::move(cluster),
          .profile_file = "/nowhere",
          .session = std::move(session),
          .requests = count,
          .arrivals = {.in_flight = 4}};
}

/// Returns requests a second of a session that has run for a while.
double rate(const graph& model, const named_tensors& inputs, const session_options& session, std::string cluster) {
  simulation_options how = requests(400, session, std::move(cluster));
  how.warm_up = 40;
  return simulate(model, inputs, how).requests_per_s;
}

/// Checks that after `slow_at` seconds, when a device gets a half of its speed, three seconds pass at most until there
/// are 0.95 of the requests a second that are best then.
void check_follows(const graph& model, const named_tensors& inputs, const session_options& session) {
  constexpr double slow_at = 5, adapts = 3;
  const double before = rate(model, inputs, session, two_cpus());
  const double after = rate(model, inputs, session, two_cpus(2));
  CAPTURE(before, after);
  CHECK(after < 0.9 * before);
  const auto count = static_cast<size_t>(before * slow_at + after * 40);
  simulation_options how = requests(count, session);
  how.speeds = {{.device = "b", .at_ms = slow_at * 1e3, .percent = 50}};
  const simulation_report r = simulate(model, inputs, how);
  CHECK(r.failed == 0);
  CHECK(r.makespan_ms * 1e-3 <= slow_at + adapts + (static_cast<double>(count) - before * slow_at) / (0.95 * after));
}

const named_tensors small{{"x", random_tensor({2, 3}, 1)}};

} // namespace

TEST_CASE("a pipeline's stages follow a device that becomes slow", "[sim][speeds]") {
  check_follows(chain(16), small, {.policy = placement_policy::pipeline});
  check_follows(chain(16), small, {.policy = placement_policy::weighted});
  check_follows(chain(16), small, {.strategy = strategy::pipeline});
}

TEST_CASE("shares follow a device that becomes slow", "[sim][speeds]") {
  const graph model = chain(16, {dim::symbol("batch"), dim(3)});
  const named_tensors batch{{"x", random_tensor({8, 3}, 1)}};
  check_follows(model, batch, {.strategy = strategy::data_parallel});
  check_follows(model, batch, {.strategy = strategy::work_stealing});
}

TEST_CASE("without a change of speed plans stay, also beside noise", "[sim][speeds]") {
  simulation_options how = requests(300, {.policy = placement_policy::pipeline});
  const double quiet = simulate(chain(16), small, how).devices[0].work_ms;
  CHECK(quiet == Approx(300 * 8 * 2.5));
  how.noise = 0.1;
  CHECK(simulate(chain(16), small, how).devices[0].work_ms == Approx(quiet).epsilon(0.05));
}

TEST_CASE("stages are balanced by the measurements of the first requests", "[sim][speeds]") {
  const session_options session{.policy = placement_policy::pipeline};
  simulation_options how = requests(1000, session);
  how.speeds = {{.device = "b", .at_ms = 0, .percent = 25}, {.device = "a", .at_ms = 0, .percent = 50}};
  const double best = rate(chain(16), small, session, two_cpus(2)) / 2;
  CHECK(simulate(chain(16), small, how).requests_per_s >= 0.9 * best); // the first seconds included
}

TEST_CASE("speeds of simulated devices are checked", "[sim][speeds]") {
  const auto refused = [](simulated_speed change) {
    simulation_options how = requests(1, {});
    how.speeds = {std::move(change)};
    return thrown_by([&] { simulate(chain(1), small, how); }).code() == errc::invalid_argument;
  };
  CHECK(refused({.device = "nobody", .at_ms = 1}));
  CHECK(refused({.device = "a", .at_ms = -1}));
  CHECK(refused({.device = "a", .percent = 0}));
  CHECK_FALSE(refused({.device = "a", .percent = 10}));
}
