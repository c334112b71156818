// The expected costs of strategies, which of them is chosen, and why the others are not.
#include "strategy/factory.hpp"

#include "plan/graphs.hpp"
#include "strategy/stream_forecast.hpp"
#include "support/catch.hpp"
#include "support/thrown.hpp"

using namespace troupe;
using namespace troupe::testing;
using test::thrown_by;

namespace {

/// GPUs on which a row of a node takes `row_s` seconds, and nothing else takes any time.
std::vector<device_info> gpus_of(size_t count, double row_s = 1e-3) {
  std::vector<device_info> devices = gpus(count);
  for (device_info& d : devices) {
    d.profile.launch_s = d.profile.barrier_s = d.profile.chunk_s = d.profile.submit_s = 0;
    d.profile.memory_bytes_per_s = 2 * 4 * sizeof(float) / row_s; // reads and writes four floats a row
  }
  return devices;
}

const dim batch = dim::symbol("batch");

/// A chain of nodes over rows of four floats.
std::shared_ptr<const graph> chain(int nodes) {
  graph_builder b;
  value_id v = b.input("x", {batch, 4});
  for (int i = 0; i < nodes; ++i)
    v = b.node(plain_op, {v}, {batch, 4});
  return b.done({v});
}

factory_question asked(std::vector<device_info> devices, int64_t rows, choice_options limits = {}) {
  return {.program = chain(8),
          .devices = std::move(devices),
          .symbols = {{"batch", rows}},
          .rows = "batch",
          .pins = {},
          .policy = placement_policy::single,
          .stream = {},
          .limits = limits};
}

strategy_choice chosen(const factory_question& q) {
  return best_of(compare_strategies(q), q.limits).shown;
}

const strategy_choice& find(const std::vector<costed_strategy>& all, strategy how, size_t devices) {
  for (const costed_strategy& c : all)
    if (c.shown.strategy == how && c.shown.devices.size() == devices)
      return c.shown;
  throw std::runtime_error("it is not compared");
}

std::vector<double> played(std::vector<forecast_replica> replicas, const std::vector<forecast_piece>& pieces,
                           size_t requests) {
  return stream_forecast(std::move(replicas), {{"batch", 1}}, "batch").play(pieces, requests);
}

} // namespace

TEST_CASE("pieces of replicas run side by side, unless they share a processor", "[strategy][cost][C1][C10]") {
  std::vector<device_info> devices = gpus_of(2);
  const auto alone = [&](size_t d) { return forecast_replica{make_plan(chain(8), {devices[d]}, {})}; };
  // A row takes 8 ms.
  CHECK(played({alone(0)}, {{0, 0, 10}}, 1)[0] == Approx(0.080));
  const std::vector<double> two = played({alone(0)}, {{0, 0, 10}, {1, 0, 5}}, 2);
  CHECK(two[0] == Approx(0.080));
  CHECK(two[1] == Approx(0.120));
  CHECK(played({alone(0), alone(1)}, {{0, 0, 10}, {0, 1, 5}}, 1)[0] == Approx(0.080));
  devices[0].processor = devices[1].processor = "one";
  CHECK(played({alone(0), alone(1)}, {{0, 0, 10}, {0, 1, 5}}, 1)[0] ==
        Approx(0.130));    // and they take turns: a quarter of 40 ms more
  devices[1].host = "far"; // a processor of that name there is another
  CHECK(played({alone(0), alone(1)}, {{0, 0, 10}, {0, 1, 5}}, 1)[0] == Approx(0.080).margin(1e-3));
}

TEST_CASE("a pipeline takes as long as its formula says", "[strategy][cost][C3][C10]") {
  const auto over_two = make_plan(chain(8), gpus_of(2), {placement_policy::pipeline});
  std::vector<forecast_piece> pieces;
  for (size_t i = 0; i < 6; ++i)
    pieces.push_back({0, 0, 1});
  // (M + N − 1) stages of 4 ms each.
  CHECK(played({{over_two, 3}}, pieces, 1)[0] == Approx(7 * 0.004));
  // With one micro-batch in flight none overlaps.
  CHECK(played({{over_two, 1}}, pieces, 1)[0] == Approx(6 * 0.008));
}

TEST_CASE("every strategy and policy is compared, the best first", "[strategy][C10]") {
  const auto all = compare_strategies(asked(gpus_of(2), 32));
  CHECK(all.size() == 2 + 2 + 1 + 6); // alone; replicas; pipeline; policies
  for (size_t i = 1; i < all.size(); ++i) {
    CHECK(all[i].shown.latency_ms >= all[0].shown.latency_ms * 0.9);
    CHECK_FALSE(all[i].shown.why.empty());
  }
  factory_question one_policy = asked(gpus_of(2), 32);
  one_policy.policy = placement_policy::weighted;
  CHECK(compare_strategies(one_policy).size() == 2 + 2 + 1 + 1);
  CHECK(all[0].shown.strategy == strategy::data_parallel);
  CHECK(all[0].shown.latency_ms == Approx(16 * 8).epsilon(0.01));
  CHECK(find(all, strategy::none, 1).latency_ms == Approx(32 * 8));
  CHECK(find(all, strategy::none, 1).why.find("times the latency") != std::string::npos);
}

TEST_CASE("the choice follows the request, the goal and the devices", "[strategy][C6][C10]") {
  CHECK(chosen(asked(gpus_of(2), 1)).strategy == strategy::none); // one row cannot be shared out
  const strategy_choice many = chosen(asked(gpus_of(2), 1, {.goal = objective::throughput}));
  CHECK(many.strategy == strategy::data_parallel); // but requests can
  CHECK(many.requests_per_s == Approx(250).epsilon(0.02));
  std::vector<device_info> same = gpus_of(2);
  same[0].processor = same[1].processor = "one";
  for (const objective goal : {objective::latency, objective::throughput})
    CHECK(chosen(asked(same, 32, {.goal = goal})).strategy == strategy::none);
  std::vector<device_info> unequal = gpus_of(2);
  unequal[1].profile.memory_bytes_per_s /= 100;
  CHECK(chosen(asked(unequal, 32)).devices == std::vector<std::string>{"vulkan:0"});
}

TEST_CASE("a pipeline that should answer less than one device says so, and is not chosen", "[strategy][C3][C10]") {
  factory_question q = asked(gpus_of(2), 64, {.goal = objective::throughput});
  const std::vector<replica_set> both = replicas_of(strategy::pipeline, q.devices);
  const auto said = [&] { return slower_than_one(q, strategy::pipeline, placement_policy::pipeline, both); };
  CHECK(said().empty());
  for (device_info& d : q.devices)
    d.profile.launch_s = 0.05; // small batches take as many launches as large ones
  // Eight pieces of four nodes, each of 58 ms, against one of eight nodes, each of 114 ms.
  CHECK(said().find("pipeline is predicted to answer 0.49 of the requests a second of") == 0);
  for (const objective goal : {objective::latency, objective::throughput}) {
    q.limits.goal = goal;
    CHECK(chosen(q).strategy != strategy::pipeline);
  }
}

TEST_CASE("a request that runs whole is not shared out", "[strategy][C10]") {
  factory_question q = asked(gpus_of(2), 32);
  q.rows.clear();
  CHECK(chosen(q).strategy == strategy::none);
  q.limits.goal = objective::throughput;
  CHECK(chosen(q).requests_per_s == Approx(2 / (32 * 8e-3)).epsilon(0.02));
}

TEST_CASE("a model that does not fit on one device is put on several", "[strategy][C2][C10]") {
  graph_builder b;
  value_id v = b.input("x", {batch, 4});
  for (int i = 0; i < 8; ++i)
    v = b.node(plain_op, {v, b.constant("w" + std::to_string(i), tensor(dtype::float32, {1000}))}, {batch, 4});
  factory_question q = asked(gpus_of(2), 4);
  q.program = b.done({v});
  for (device_info& d : q.devices)
    d.memory_bytes = 20000; // of 32,000
  const auto all = compare_strategies(q);
  CHECK(all[0].shown.possible);
  CHECK(all[0].shown.devices.size() == 2);
  CHECK((all[0].shown.strategy == strategy::model_parallel || all[0].shown.strategy == strategy::pipeline));
  CHECK_FALSE(find(all, strategy::data_parallel, 2).possible);
  CHECK(find(all, strategy::none, 1).why.find("vulkan") != std::string::npos);
  CHECK(find(all, strategy::none, 1).latency_ms == 0);
  // Over a limit, the nearest is one that fits, however fast the others would be.
  q.limits.max_latency = std::chrono::microseconds(1);
  const auto late = compare_strategies(q);
  CHECK(late[0].shown.devices.size() == 2);
  CHECK(late[0].shown.memory_bytes > 0);
  CHECK(thrown_by([&] { best_of(late, q.limits); }).code() == errc::invalid_argument);
  for (device_info& d : q.devices)
    d.memory_bytes = 100; // nothing fits anywhere
  CHECK(thrown_by([&] { best_of(compare_strategies(q), q.limits); }).code() == errc::out_of_memory);
}

TEST_CASE("limits hold, or the nearest plan is named", "[strategy][C10]") {
  CHECK(chosen(asked(gpus_of(4), 32, {.max_devices = 2})).devices.size() == 2);
  const auto whole = compare_strategies(asked(gpus_of(2), 32));
  const int64_t alone = find(whole, strategy::none, 1).memory_bytes;
  CHECK(chosen(asked(gpus_of(2), 32, {.max_memory = alone})).memory_bytes <= alone);
  using std::chrono::milliseconds;
  // The most requests a second within a time that one device alone would not keep to.
  const choice_options both{.goal = objective::throughput, .max_latency = milliseconds(200)};
  CHECK(chosen(asked(gpus_of(2), 32, both)).latency_ms <= 200);
  const error e =
      thrown_by([] { chosen(asked(gpus_of(2), 32, {.max_devices = 1, .max_latency = milliseconds(200)})); });
  CHECK(e.code() == errc::invalid_argument);
  CHECK_THAT(e.what(), Catch::Contains("the nearest is none over vulkan:0: 256") &&
                           Catch::Contains("256.000 ms are longer than 200.000 ms"));
  CHECK(thrown_by([] { compare_strategies(asked({}, 1)); }).code() == errc::invalid_argument);
}

TEST_CASE("a pin holds, whatever is chosen", "[strategy][C10]") {
  factory_question q = asked(gpus_of(3), 32);
  q.pins = {{"*", "vulkan:1"}};
  const auto all = compare_strategies(q);
  CHECK(all[0].shown.strategy == strategy::none);
  CHECK(all[0].shown.devices == std::vector<std::string>{"vulkan:1"});
  CHECK_FALSE(find(all, strategy::data_parallel, 3).possible);
  CHECK_THAT(find(all, strategy::data_parallel, 3).why, Catch::Contains("vulkan:1"));
  CHECK(find(all, strategy::model_parallel, 3).possible);
  q.pins = {{"*", "vulkan:9"}};
  CHECK(thrown_by([&] { compare_strategies(q); }).code() == errc::invalid_argument);
}

TEST_CASE("as many devices as there may be are tried", "[strategy][C10]") {
  CHECK(chosen(asked(gpus_of(16), 96, {.max_devices = 6})).devices.size() == 6);
  CHECK(chosen(asked(gpus_of(12), 96, {.max_devices = 16})).devices.size() == 12);
}

TEST_CASE("a request of very many micro-batches is predicted from some of them", "[strategy][cost][C10]") {
  for (const size_t devices : {1, 2}) {
    const auto latency = [&](int64_t rows) {
      factory_question q = asked(gpus_of(devices), rows);
      q.stream.micro_batch = 1;
      const auto all = compare_strategies(q);
      return find(all, devices == 1 ? strategy::none : strategy::pipeline, devices).latency_ms;
    };
    const double few = latency(200), many = latency(500'000'000); // would not end if all were played
    CHECK(many / few == Approx(2.5e6).epsilon(0.02));
  }
  factory_question q = asked(gpus_of(2), 1'000'000, {.goal = objective::throughput});
  q.stream.micro_batch = 1;
  CHECK(find(compare_strategies(q), strategy::work_stealing, 2).requests_per_s == Approx(2 / 8e3).epsilon(0.02));
}

TEST_CASE("a model that has nothing to do has a plan, too", "[strategy][C10]") {
  factory_question q = asked(gpus_of(2), 4);
  graph_builder b;
  q.program = b.done({b.constant("w", tensor::scalar(1.F))});
  const auto all = compare_strategies(q);
  CHECK(all[0].shown.possible);
  for (const costed_strategy& c : all) {
    CHECK(c.shown.has_plan);
    CHECK(c.shown.why.find("nan") == std::string::npos);
    CHECK(c.shown.why.find("inf") == std::string::npos);
  }
}

TEST_CASE("a model that no strategy can run has an error that says why", "[strategy][C10]") {
  factory_question q = asked(gpus_of(2), 1);
  graph_builder b;
  q.program = b.done({b.node(host_op, {b.input("x", {batch, 4})}, {batch, 4})});
  const error e = thrown_by([&] { compare_strategies(q); });
  CHECK(e.code() == errc::unsupported);
}
