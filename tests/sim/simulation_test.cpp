// Whole simulations: makespans that can be computed by hand, compared with predictions.
#include "plan/estimate/gpu_support.hpp"
#include "plan/estimate/predict.hpp"
#include "plan/graphs.hpp"
#include "sim/arrival_times.hpp"
#include "strategy/call_model.hpp"
#include "support/catch.hpp"
#include "support/control_models.hpp"
#include "support/small_models.hpp"
#include "support/thrown.hpp"
#include "trace/check_trace.hpp"
#include "trace/timeline.hpp"
#include "troupe/built_model.hpp"
#include "troupe/simulation.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <set>

using namespace troupe;
using namespace troupe::test;
using Catch::Contains;

namespace {

/// CPUs on which each node takes a second, an answer half of one.
std::string slow_cpus(int count, const std::string& more = "") {
  return R"({"version": 1, "coordinator_s": 0, "hosts": [{"devices": [{"name": "c", "count": )" +
         std::to_string(count) +
         R"(, "kind": "cpu", "memory_bytes": 1000000000, "profile": {"launch_s": 1, "chunk_s": 0.5, "submit_s": 0, )" +
         R"("float32": 1e21, "other": 1e21, "memory_bytes_per_s": 1e21}}]}]})" + more;
}

/// GPUs on which nodes take no time, and copies 1,000 bytes a second each way.
std::string copying_gpus(int count, const std::string& links) {
  return R"({"version": 1, "coordinator_s": 0, "hosts": [{"devices": [{"name": "g", "count": )" +
         std::to_string(count) + R"(, "kind": "vulkan", "memory_bytes": 1000000000, "channels_last": false, )" +
         R"("profile": {"launch_s": 0, "barrier_s": 0, "chunk_s": 0, )" +
         R"("submit_s": 0, "float32": 1e21, "other": 1e21, "memory_bytes_per_s": 1e21, )" +
         R"("up.latency_s": 0, "down.latency_s": 0, )" +
         R"("up.bytes_per_s": 1000, "down.bytes_per_s": 1000, "input_bytes_per_s": 1e21}}]}], "shared_links": [)" +
         links + "]}";
}

simulation_options over(std::string cluster, session_options session = {}) {
  return {.cluster_text = std::move(cluster), .profile_file = "/nowhere", .session = std::move(session)};
}

graph relu(symbolic_shape dims) {
  return chain(1, std::move(dims));
}

/// Two nodes side by side, x_out and y_out, that read and make 1,000 bytes each.
graph two_relus() {
  graph_builder b;
  std::vector<value_id> made;
  for (const char* name : {"x", "y"})
    made.push_back(b.op("Relu", {b.input(name, {250})}, {}, std::string(name) + "_out"));
  for (value_id v : made)
    b.output(v);
  return std::move(b.g);
}

named_tensors two_inputs() {
  return {{"x", random_tensor({250}, 1)}, {"y", random_tensor({250}, 2)}};
}

} // namespace

TEST_CASE("a chain takes its nodes and the answers between devices", "[sim]") {
  const named_tensors x{{"x", random_tensor({2, 3}, 1)}};
  simulation_options how = over(slow_cpus(2), {.fuse = false});
  const simulation_report one = simulate(chain(4), x, how);
  CHECK(one.makespan_ms == Approx(4500));
  CHECK(one.chunks == 1);
  CHECK(one.path_bound_ms == Approx(4000));
  CHECK(one.area_bound_ms == Approx(2000).epsilon(0.01));
  how.session.policy = placement_policy::round_robin;
  const simulation_report two = simulate(chain(4), x, how);
  CHECK(two.makespan_ms == Approx(6000));
  CHECK(two.chunks == 4);
  REQUIRE(two.critical_path.size() == 4);
  CHECK(two.critical_path[0].waited_for == "start");
  CHECK(two.critical_path[3].waited_for == "dependency");
  CHECK(two.devices[0].utilisation == Approx(2.0 / 6));
  CHECK(two.devices[0].peak_bytes > 0);
}

TEST_CASE("requests wait for a device that is busy", "[sim]") {
  simulation_options how = over(slow_cpus(1), {.fuse = false});
  how.requests = 3;
  how.arrivals = {.how = arrivals::process::listed, .times_s = {0, 0.5, 10}};
  const simulation_report r = simulate(chain(1), {{"x", random_tensor({2, 3}, 1)}}, how);
  CHECK(r.makespan_ms == Approx(11500));
  CHECK(r.max_ms == Approx(2000)); // half a second of waiting
  CHECK(r.p50_ms == Approx(1500));
}

TEST_CASE("copies over a link that devices share get half of it each", "[sim][links]") {
  const graph two = two_relus();
  session_options apart{.pins = {{"x_out", "g:0"}, {"y_out", "g:1"}}, .fuse = false};
  // 1,000 bytes up and 1,000 down.
  CHECK(simulate(two, two_inputs(), over(copying_gpus(2, ""), apart)).makespan_ms == Approx(2000));
  const std::string shared = R"({"name": "pcie", "bytes_per_s": 1000, "devices": ["g:0", "g:1"]})";
  const simulation_report r = simulate(two, two_inputs(), over(copying_gpus(2, shared), apart));
  CHECK(r.makespan_ms == Approx(4000));
  REQUIRE(r.links.size() == 2);
  CHECK(r.links[0].bytes == 2000);
  CHECK(r.links[0].utilisation == Approx(0.5));
  const std::string half = R"({"name": "bus", "bytes_per_s": 1000, "half_duplex": true, "devices": ["g:0", "g:1"]})";
  CHECK(simulate(two, two_inputs(), over(copying_gpus(2, half), apart)).links[0].bytes == 4000);
}

TEST_CASE("the rate at which the session's host sends to all others together has a limit", "[sim][links][D4]") {
  const std::string device =
      R"("devices": [{"name": "c", "kind": "cpu", "memory_bytes": 1000000000, )"
      R"("profile": {"launch_s": 0, "chunk_s": 0, "submit_s": 0, "float32": 1e21, "other": 1e21, )"
      R"("memory_bytes_per_s": 1e21, "input_bytes_per_s": 1e21}}])";
  const auto with_limits = [&](const std::string& limits) {
    return R"({"version": 1, "coordinator_s": 0, "own_network": {)" + limits + R"(}, "hosts": [)" +
           R"({"name": "a", "link": {"bytes_per_s": 1000}, )" + device + "}, " +
           R"({"name": "b", "link": {"bytes_per_s": 1000}, )" + device + "}]}";
  };
  const session_options apart{.pins = {{"x_out", "a/c"}, {"y_out", "b/c"}}, .fuse = false};
  const auto makespan = [&](const std::string& limits) {
    return simulate(two_relus(), two_inputs(), over(with_limits(limits), apart)).makespan_ms;
  };
  // 1,000 bytes to each host and 1,000 from each.
  CHECK(makespan("") == Approx(2000));
  CHECK(makespan(R"("out_bytes_per_s": 1000)") == Approx(3000));
  CHECK(makespan(R"("out_bytes_per_s": 1000, "in_bytes_per_s": 1000)") == Approx(4000));
}

TEST_CASE("a device that is lost costs its run once more", "[sim][C11]") {
  simulation_options how = over(slow_cpus(2), {.fuse = false});
  how.losses = {{.device = "c:0", .at_ms = 1500}};
  const simulation_report r = simulate(chain(4), {{"x", random_tensor({2, 3}, 1)}}, how);
  CHECK(r.failed == 0);
  CHECK(r.makespan_ms == Approx(1500 + 4500));
  CHECK(r.devices[1].chunks == 1);
  how.losses.push_back({.device = "c:1", .at_ms = 2000});
  const simulation_report none = simulate(chain(4), {{"x", random_tensor({2, 3}, 1)}}, how);
  CHECK(none.failed == 1);
  CHECK_THAT(none.first_failure, Contains("the simulation takes it out"));
}

TEST_CASE("the error of a model that does not fit has the figures", "[sim]") {
  std::string tiny = slow_cpus(1);
  tiny.replace(tiny.find("1000000000"), 10, "20");
  const simulation_report r = simulate(chain(2), {{"x", random_tensor({2, 3}, 1)}}, over(tiny));
  CHECK(r.failed == 1);
  CHECK_THAT(r.first_failure, Contains("20"));
}

TEST_CASE("a loop whose end depends on data ends in simulations", "[sim][control]") {
  graph_builder b;
  const value_id start = b.input("start", {4});
  b.output(add_loop(b, "loop", b.constant("count", count(200)), no_value, start,
                    [](body_builder& body, value_id, value_id, value_id v) {
                      const value_id most = body.op("ReduceMax", {v}, attrs_of({{"keepdims", int64_t{0}}}));
                      return std::pair(body.op("Cast", {most}, attrs_of({{"to", int64_t{9}}})), body.op("Exp", {v}));
                    }));
  const simulation_report r = simulate(b.g, {{"start", random_tensor({4}, 1)}}, over(slow_cpus(1), {.fuse = false}));
  CHECK(r.failed == 0);
  CHECK(r.chunks == representative_dim);
}

TEST_CASE("a device's peak is the memory that runs hold together, not one after the other", "[sim]") {
  simulation_options how = over(slow_cpus(1), {.fuse = false});
  const auto peak = [&](size_t requests, size_t in_flight) {
    how.requests = requests;
    how.arrivals.in_flight = in_flight;
    return simulate(chain(4, {256, 256}), {{"x", random_tensor({256, 256}, 1)}}, how).devices[0].peak_bytes;
  };
  const int64_t one = peak(1, 1);
  CHECK(one >= 256 * 256 * 4);
  CHECK(peak(5, 1) == one);
  CHECK(peak(5, 3) > one);
}

TEST_CASE("a list of times whose line never ends is refused after its beginning", "[sim][E5]") {
  CHECK_THROWS_WITH(read_arrivals("/dev/zero"), Contains("/dev/zero: line 1: longer than 64 characters"));
}

TEST_CASE("requests arrive at random as often as they should", "[sim]") {
  constexpr size_t count = 20'000;
  const std::vector<double> times = sim::arrival_times({.how = arrivals::process::poisson, .per_second = 4}, count, 7);
  size_t long_gaps = 0;
  for (size_t i = 1; i < count; ++i)
    long_gaps += times[i] - times[i - 1] > 0.25;
  CHECK(times.back() / count == Approx(0.25).epsilon(0.03));
  CHECK(static_cast<double>(long_gaps) / count == Approx(std::exp(-1)).epsilon(0.03)); // of an exponential distribution
}

TEST_CASE("noise makes times vary around what they should be", "[sim]") {
  simulation_options how = over(slow_cpus(1), {.fuse = false});
  how.noise = 0.1;
  double sum = 0;
  std::set<double> seen;
  for (how.seed = 1; how.seed <= 200; ++how.seed) {
    const double ms = simulate(chain(2), {{"x", random_tensor({2, 3}, 1)}}, how).makespan_ms;
    sum += ms;
    seen.insert(ms);
  }
  CHECK(sum / 200 == Approx(2500).epsilon(0.02));
  CHECK(seen.size() > 190);
}

TEST_CASE("noise and arrivals follow their seed", "[sim]") {
  simulation_options how = over(slow_cpus(1), {.fuse = false});
  how.noise = 0.3;
  how.requests = 20;
  how.arrivals = {.how = arrivals::process::poisson, .per_second = 0.5};
  const auto text = [&](uint64_t seed) {
    how.seed = seed;
    simulation_report r = simulate(chain(2), {{"x", random_tensor({2, 3}, 1)}}, how);
    r.plan_s = r.simulate_s = 0;
    return to_json(r);
  };
  CHECK(text(1) == text(1));
  CHECK(text(1) != text(2));
}

TEST_CASE("a simulation of one run takes the time that its plan predicts", "[sim][cost]") {
  for (const uint32_t seed : {1, 2, 3, 4, 5, 6, 7, 8}) {
    const graph g = fan_out(3 + seed, 4);
    const named_tensors x{{"x", random_tensor({4}, seed)}};
    for (const placement_policy policy :
         {placement_policy::single, placement_policy::round_robin, placement_policy::weighted}) {
      std::string cluster = copying_gpus(3, "");
      const auto set = [&](const std::string& from, const std::string& to) {
        cluster.replace(cluster.find(from), from.size(), to);
      };
      set(R"("launch_s": 0)", R"("launch_s": 0.01)");
      set(R"("chunk_s": 0)", R"("chunk_s": 0.02)");
      set(R"("submit_s": 0)", R"("submit_s": 0.001)");
      const simulation_report r = simulate(g, x, over(cluster, {.policy = policy, .fuse = false}));
      simulation_options traced = over(cluster, {.policy = policy, .fuse = false});
      traced.trace = true;
      const auto trace = simulate(g, x, traced).trace;
      REQUIRE(trace);
      const prediction p = predict(*trace->source, expected_dims(*trace->source->program, {}));
      INFO("seed " << seed << ", policy " << static_cast<int>(policy));
      CHECK(r.makespan_ms == Approx(p.makespan_s * 1e3).epsilon(0.01));
      CHECK(r.makespan_ms >= r.path_bound_ms);
      CHECK(trace->chunks.size() == trace->source->chunks.size());
    }
  }
}

TEST_CASE("strategies are simulated by the machine that real streams have", "[sim][C1][C3][C4]") {
  call_model m;
  m.output(m.op("Relu", {m.input("x", {batch, 4})}, {}, "y"));
  simulation_options how = over(slow_cpus(4), {.strategy = strategy::data_parallel, .fuse = false});
  how.requests = 8;
  how.arrivals.in_flight = 8;
  const named_tensors x{{"x", random_tensor({1, 4}, 1)}};
  const simulation_report data = simulate(m.g, x, how);
  CHECK(data.failed == 0);
  for (const simulated_device& d : data.devices)
    CHECK(d.chunks == 2); // whole requests, in turn
  how.session.strategy = strategy::work_stealing;
  how.losses = {{.device = "c:3", .at_ms = 200}};
  const simulation_report stealing = simulate(m.g, x, how);
  CHECK(stealing.failed == 0);
  CHECK(stealing.devices[3].chunks == 0);
  CHECK(stealing.chunks == 8);
  how.losses.clear();
  how.session = {.strategy = strategy::automatic, .choice = {.goal = objective::throughput}};
  CHECK(simulate(m.g, x, how).choice.devices.size() == 4);
}

TEST_CASE("a model larger than this machine's memory is simulated", "[sim][C12]") {
  graph_builder b;
  const int64_t rows = int64_t{1} << 34; // 256 GiB a value
  b.output(b.op("Relu", {b.op("Sigmoid", {b.input("x", {dim::symbol("n"), 4})})}));
  std::string cluster = slow_cpus(1);
  cluster.replace(cluster.find("1000000000"), 10, "4000000000000");
  tensor ones(dtype::float32, {1, 4});
  const auto forever = std::shared_ptr<const void>(std::shared_ptr<const void>(), ones.data());
  const simulation_report r =
      simulate(b.g, {{"x", tensor(dtype::float32, {rows, 4}, forever, ones.data())}}, over(cluster, {.fuse = false}));
  CHECK(r.failed == 0);
  CHECK(r.devices[0].peak_bytes > rows * 16);
}

TEST_CASE("options of a simulation that cannot be are refused", "[sim]") {
  const named_tensors x{{"x", random_tensor({2, 3}, 1)}};
  const auto refused = [&](const std::function<void(simulation_options&)>& change) {
    simulation_options how = over(slow_cpus(1));
    change(how);
    return thrown_by([&] { simulate(relu({2, 3}), x, how); }).code() == errc::invalid_argument;
  };
  CHECK(refused([](auto& how) { how.requests = 0; }));
  CHECK(refused([](auto& how) { how.arrivals.in_flight = 0; }));
  CHECK(refused([](auto& how) { how.arrivals = {.how = arrivals::process::poisson}; }));
  CHECK(refused([](auto& how) { how.arrivals = {.how = arrivals::process::listed, .times_s = {}}; }));
  for (const double wrong : {-1.0, 2e9, double(INFINITY), double(NAN)})
    CHECK(refused([&](auto& how) { how.arrivals = {.how = arrivals::process::listed, .times_s = {wrong}}; }));
  CHECK(refused([](auto& how) { how.noise = -1; }));
  CHECK(refused([](auto& how) { how.losses = {{.device = "c", .at_ms = 2, .back_ms = 1}}; }));
  CHECK(refused([](auto& how) { how.losses = {{.device = "nobody", .at_ms = 2}}; }));
  CHECK(refused([](auto& how) { how.cluster_text.clear(); }));
  CHECK(refused([](auto& how) { how.session.devices = {"nobody"}; }));
}

TEST_CASE("a simulated run is a timeline with memory and queues, like a real one", "[sim][trace]") {
  simulation_options how = over(slow_cpus(2), {.policy = placement_policy::round_robin, .fuse = false});
  how.trace = true;
  const simulation_report report = simulate(chain(4), {{"x", random_tensor({2, 3}, 1)}}, how);
  REQUIRE(report.trace);
  const timeline t = timeline_of(*report.trace);
  CHECK(check_trace(to_chrome_json(t)).listed == std::vector<std::string>{});
  CHECK(t.end_ns == 6'000'000'000);
  CHECK(t.lanes.size() == 3);
  CHECK(std::count_if(t.bars.begin(), t.bars.end(), [](const timeline_bar& b) { return b.kind == bar_kind::node; }) ==
        4);
  CHECK(critical_path(t).size() == 8); // every chunk and its node
  how.session.policy = placement_policy::single;
  const timeline one_chunk = timeline_of(*simulate(chain(4), {{"x", random_tensor({2, 3}, 1)}}, how).trace);
  int64_t nodes_end = 0;
  for (const timeline_bar& b : one_chunk.bars)
    if (b.kind == bar_kind::node) {
      CHECK(b.begin_ns == nodes_end); // one after the other
      nodes_end = b.end_ns;
    }
  CHECK(nodes_end == 4'000'000'000);
  for (const char* name : {"memory", "queue"})
    CHECK(std::count_if(t.counters.begin(), t.counters.end(),
                        [&](const timeline_counter& c) { return c.name == name; }) == 2);
  for (const timeline_counter& c : t.counters)
    CHECK(std::any_of(c.points.begin(), c.points.end(), [](const counter_point& p) { return p.values.back() > 0; }));
}
