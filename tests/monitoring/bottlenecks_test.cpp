// Causes of slow runs, found in traces that have them and not in others; their gains are compared with runs without the
// cause.
#include "monitoring/bottlenecks.hpp"

#include "actors/engine_access.hpp"
#include "monitoring/made_run.hpp"
#include "monitoring/replay.hpp"
#include "support/catch.hpp"
#include "support/small_models.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Contains;

namespace {

/// A device index for each node of a chain.
using homes = std::vector<device_index>;

homes at(size_t first, size_t second) {
  homes h(first, 0);
  h.insert(h.end(), second, 1);
  return h;
}

std::vector<placement_pin> pins_of(const graph& g, const homes& where, const std::vector<device_info>& devices) {
  std::vector<placement_pin> pins;
  for (size_t n = 0; n < where.size(); ++n)
    pins.push_back({g.nodes[n].name, devices[where[n]].name});
  return pins;
}

/// Nodes one after the other.
std::shared_ptr<const plan> chain(const homes& where, const std::vector<device_info>& devices,
                                  placement_policy policy = placement_policy::single, const op_def& op = work_op) {
  graph_builder b;
  value_id v = b.input({4});
  for (size_t n = 0; n < where.size(); ++n)
    v = b.node(op, {v}, {4});
  const auto g = b.done({v});
  return make_plan(g, devices, {.policy = policy, .pins = pins_of(*g, where, devices)});
}

/// Two chains of a number of nodes that do not depend on each other, on a device each.
std::shared_ptr<const plan> two_chains(size_t first, size_t second, placement_policy policy) {
  graph_builder b;
  const value_id in = b.input({4});
  std::vector<value_id> ends;
  for (size_t count : {first, second}) {
    value_id v = in;
    for (size_t n = 0; n < count; ++n)
      v = b.node(work_op, {v}, {4});
    ends.push_back(v);
  }
  const auto g = b.done(ends);
  return make_plan(g, cpus(2), {.policy = policy, .pins = pins_of(*g, at(first, second), cpus(2))});
}

/// Returns the finding of this cause; fails if there is none.
finding only(const std::vector<finding>& found, const std::string& cause) {
  for (const finding& f : found)
    if (f.cause == cause)
      return f;
  FAIL("no finding '" << cause << "' in:\n" << to_text(found));
  return {};
}

bool has(const std::vector<finding>& found, const std::string& cause) {
  return std::any_of(found.begin(), found.end(), [&](const finding& f) { return f.cause == cause; });
}

double gain_between(const run_trace& with, const run_trace& without) {
  return 1 - seconds_of(without) / seconds_of(with);
}

/// Requires a finding whose gain is what the run `without` its cause shows, in which there is no such finding.
finding check_gain(const run_trace& with, const run_trace& without, const std::string& cause) {
  const finding f = only(find_bottlenecks(with), cause);
  INFO(to_text(find_bottlenecks(with)));
  CHECK(f.gain == Approx(gain_between(with, without)).epsilon(1e-4));
  CHECK(f.severity == (f.gain >= 0.3 ? severity::critical : severity::warning));
  CHECK_FALSE(has(find_bottlenecks(without), cause));
  return f;
}

} // namespace

TEST_CASE("a run that nothing slows down has no findings", "[monitor][C9]") {
  CHECK(find_bottlenecks(made_run(chain(homes(6, 0), gpus(1)))).empty());
  CHECK(find_bottlenecks(made_run(two_chains(5, 5, placement_policy::round_robin))).empty());
  CHECK(find_bottlenecks(run_trace{}).empty());
}

TEST_CASE("devices that idle while others work", "[monitor][C9]") {
  const run_trace even = made_run(two_chains(5, 5, placement_policy::round_robin));
  const finding f = check_gain(made_run(two_chains(8, 2, placement_policy::round_robin)), even, "imbalance");
  CHECK(f.where == "cpu#0");
  CHECK(f.what == "cpu#0 works 100 % of the time, cpu#1 25 %");
  CHECK(f.lost == Approx(0.375));
  CHECK_THAT(f.advice, Contains("--policy heft"));
  const auto by_heft = find_bottlenecks(made_run(two_chains(8, 2, placement_policy::heft)));
  CHECK_THAT(only(by_heft, "imbalance").advice, Contains("--keep"));
}

TEST_CASE("devices of one processor are not compared", "[monitor][C9]") {
  std::vector<device_info> twins = cpus(2);
  for (device_info& d : twins)
    d.processor = "one";
  CHECK_FALSE(has(find_bottlenecks(made_run(chain(at(8, 2), twins))), "taking_turns"));
}

TEST_CASE("a device that is too slow to help", "[monitor][C9]") {
  std::vector<device_info> devices = cpus(2);
  devices[1].profile.flops_per_s.fill(1e10);
  const part_times times{
      .node = [](const plan& p, node_id n) { return p.placement[static_cast<size_t>(n)] == 1 ? 100.0 : 10.0; }};
  const run_trace alone = made_run(chain(homes(10, 0), devices), times);
  const finding f = check_gain(made_run(chain(at(8, 2), devices), times), alone, "slow_device");
  CHECK(f.where == "cpu#1");
  CHECK_THAT(f.what, Contains("10.0 times slower than cpu#0"));
  CHECK_THAT(f.advice, Contains("--devices cpu#0"));
}

TEST_CASE("devices that wait for each other", "[monitor][C9]") {
  const auto found = find_bottlenecks(made_run(chain(at(6, 4), cpus(2))));
  const finding f = only(found, "taking_turns");
  CHECK(f.gain == Approx(0.4)); // each of many requests takes the first device's 60 ms of 100
  CHECK_THAT(f.advice, Contains("--strategy pipeline"));
  CHECK(found.size() == 1);
}

TEST_CASE("moves between devices on the longest path", "[monitor][C9]") {
  const homes there_and_back{0, 0, 1, 1, 0, 0};
  const part_times times{.move = 5};
  const run_trace moving = made_run(chain(there_and_back, gpus(2), placement_policy::round_robin), times);
  const run_trace one = made_run(chain(homes(6, 0), gpus(2)), times);
  const finding f = check_gain(moving, one, "moves");
  CHECK(f.gain == Approx(0.25)); // four copies of 5 ms beside 60 ms of work
  CHECK_THAT(f.what, Contains("20.000 ms of copies"));
  CHECK_THAT(f.advice, Contains("--policy single --devices vulkan:0"));
}

TEST_CASE("moves between devices of which none can hold the model", "[monitor][C9]") {
  const part_times times{.move = 5};
  std::vector<device_info> devices = gpus(2);
  const auto small = std::make_shared<plan>(*chain({0, 0, 1, 1, 0, 0}, devices, placement_policy::round_robin));
  for (device_info& d : small->devices)
    d.memory_bytes = 10;
  small->weight_bytes = {8, 8};
  CHECK_THAT(only(find_bottlenecks(made_run(small, times)), "moves").advice, Contains("--policy heft"));
  small->options.policy = placement_policy::heft;
  CHECK_THAT(only(find_bottlenecks(made_run(small, times)), "moves").advice, Contains("--calibrate"));
}

TEST_CASE("copies of the caller's inputs and outputs", "[monitor][C9]") {
  const auto p = chain(homes(5, 0), gpus(1));
  const run_trace free = made_run(p);
  const finding in = check_gain(made_run(p, {.input = 30}), free, "inputs");
  CHECK(in.gain == Approx(0.375));
  CHECK_THAT(in.advice, Contains("engine::allocate"));
  CHECK_THAT(check_gain(made_run(p, {.output = 30}), free, "outputs").advice, Contains("session::bind"));
}

TEST_CASE("many small chunks", "[monitor][C9]") {
  const part_times times{.lead = 3, .answer = 2};
  homes alternating;
  for (device_index n = 0; n < 12; ++n)
    alternating.push_back(n % 2);
  const auto p = chain(alternating, cpus(2));
  REQUIRE(p->chunks.size() == 12);
  const finding f = check_gain(made_run(p, times), made_run(chain(homes(12, 0), cpus(2)), times), "small_chunks");
  CHECK_THAT(f.what, Contains("12 chunks, half of which work 10.000 ms or less"));
  CHECK_THAT(f.advice, Contains("--policy single"));
}

TEST_CASE("many small chunks on devices of one processor, or on one device", "[monitor][C9]") {
  std::vector<device_info> twins = cpus(2);
  for (device_info& d : twins)
    d.processor = "one";
  homes alternating;
  for (device_index n = 0; n < 12; ++n)
    alternating.push_back(n % 2);
  const part_times times{.lead = 3, .answer = 2};
  const auto two = chain(alternating, twins);
  CHECK_THAT(only(find_bottlenecks(made_run(two, times)), "small_chunks").advice, Contains("--policy single"));
  const auto one = std::make_shared<plan>(*two);
  for (chunk& c : one->chunks)
    c.device = 0;
  one->placement.assign(one->placement.size(), 0);
  CHECK_THAT(only(find_bottlenecks(made_run(one, times)), "small_chunks").advice, Contains("--max-batch"));
}

TEST_CASE("one node that dominates", "[monitor][C9]") {
  std::vector<device_info> devices = cpus(2);
  devices[1].profile.flops_per_s.fill(1e11 * 4);
  const auto p = chain(homes(5, 0), devices);
  const auto third = [](double ms) {
    return part_times{.node = [ms](const plan&, node_id n) { return n == 2 ? ms : 10.0; }};
  };
  const finding f = only(find_bottlenecks(made_run(p, third(80))), "one_node");
  CHECK_THAT(f.what, Contains("takes 80.000 ms, 67 % of the time"));
  CHECK_THAT(f.advice, Contains("data-parallel")); // five times as fast as one: 1 + 4
  CHECK(f.gain == Approx(gain_between(made_run(p, third(80)), made_run(p, third(16)))).epsilon(1e-3));
  CHECK_FALSE(has(find_bottlenecks(made_run(p)), "one_node"));
  const finding alone = only(find_bottlenecks(made_run(chain(homes(5, 0), cpus(1)), third(80))), "one_node");
  CHECK(alone.gain == 0);
  CHECK(alone.severity == severity::note);
  const auto gpu = chain(homes(5, 0), gpus(1));
  CHECK_FALSE(has(find_bottlenecks(made_run(gpu)), "one_node"));
}

TEST_CASE("the fallback device does most of the work", "[monitor][C9]") {
  const auto devices = gpus_and_fallback(1);
  graph_builder b;
  value_id v = b.input({4});
  for (int n = 0; n < 10; ++n)
    v = b.node(n % 5 == 0 ? work_op : host_work_op, {v}, {4});
  const auto p = make_plan(b.done({v}), devices, {});
  const part_times times{.move = 10};
  const run_trace trace = made_run(p, times);
  const finding f = only(find_bottlenecks(trace), "fallback");
  CHECK(f.where == "cpu#0");
  CHECK_THAT(f.what, Contains("does 80 % of the work: 8 × test.host_work"));
  CHECK(f.advice == "run everything there: --devices cpu#0");
  const run_trace alone = made_run(chain(homes(10, 0), cpus(1), placement_policy::single, host_work_op), times);
  CHECK(f.gain == Approx(gain_between(trace, alone)));
  CHECK_FALSE(has(find_bottlenecks(made_run(chain(homes(10, 0), devices))), "fallback"));
}

TEST_CASE("times far from the predicted ones", "[monitor][C9]") {
  const auto p = chain(homes(6, 0), cpus(1));
  const auto each = [](double ms) { return part_times{.node = [ms](const plan&, node_id) { return ms; }}; };
  const finding f = only(find_bottlenecks(made_run(p, each(50))), "prediction");
  CHECK_THAT(f.what, Contains("nodes take 300.000 ms, predicted are 60.0"));
  CHECK_THAT(f.advice, Contains("troupe profile --calibrate"));
  CHECK(has(find_bottlenecks(made_run(p, each(2))), "prediction"));
  CHECK_FALSE(has(find_bottlenecks(made_run(p, each(25))), "prediction"));
}

TEST_CASE("a run that is played through again takes as long as it took", "[monitor][C9][actors]") {
  engine e({.devices = {"cpu*2"}});
  graph_builder b;
  const value_id x = b.input("x", {2, 3});
  const value_id a = b.op("Sigmoid", {x}), c = b.op("Relu", {x});
  b.output(b.op("Add", {b.op("Sigmoid", {a}), c}));
  b.output(b.op("Mul", {a, c}));
  const session s = e.load(b.g, {.policy = placement_policy::round_robin, .fuse = false});
  for (int i = 0; i < 20; ++i) {
    const auto trace = s.run({{"x", test::floats({2, 3}, {-1, 2, 3, 4, 5, 6})}}, {.trace = true}).trace;
    const monitoring::replayed_run run = monitoring::replay_of(*trace);
    CHECK(monitoring::makespan(run) == Approx(seconds_of(*trace)));
    for (const monitoring::replayed_chunk& part : run.chunks)
      CHECK(part.busy_s() >= 0);
  }
}

TEST_CASE("control flow and later segments are played through as they ran", "[monitor][C9][actors]") {
  graph_builder b;
  const value_id n = b.input("n", {}, dtype::int64), x = b.input("x", {2, 3});
  const value_id y =
      test::add_loop(b, "loop", n, no_value, x, [](test::body_builder& body, value_id, value_id go, value_id v) {
        return std::pair(go, body.op("Sigmoid", {v}));
      });
  b.output(b.op("Relu", {y}));
  b.output(b.op("Cast", {b.op("NonZero", {y})}, test::attrs_of({{"to", int64_t{1}}})));
  engine e({.devices = {"cpu"}});
  const auto trace =
      e.load(b.g)
          .run({{"x", test::floats({2, 3}, {-1, 2, 3, 4, 5, 6})}, {"n", tensor::scalar<int64_t>(50)}}, {.trace = true})
          .trace;
  CHECK(trace->source->segment_count == 2);
  CHECK(monitoring::makespan(monitoring::replay_of(*trace)) == Approx(seconds_of(*trace)));
  for (const finding& f : find_bottlenecks(*trace))
    CHECK(f.cause != "one_node");
}
