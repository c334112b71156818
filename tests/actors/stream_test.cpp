// Streams of requests over replicas: the same results as one device gives, each once, whatever happens to devices,
// callers and engine.
#include "actors/row_models.hpp"
#include "support/small_models.hpp"

#include <atomic>
#include <mutex>
#include <thread>

using Catch::Contains;
using namespace std::chrono_literals;
using namespace troupe;
using namespace troupe::test;

namespace {

/// y = x − the mean of all rows.
graph rows_mixed() {
  call_model m;
  const value_id x = m.input("x", {batch, 4});
  m.output(m.op("Sub", {x, m.op("ReduceMean", {x}, attrs_of({{"axes", std::vector<int64_t>{0}}}), "mean")}, {}, "y"));
  return m.g;
}

tensor rows_of_x(int64_t rows, uint64_t seed) {
  return random_tensor({rows, 4}, seed);
}

session_options with(strategy how, const stream_options& stream = {}) {
  return {.strategy = how, .stream = stream};
}

uint64_t pieces_of(const session& s) {
  uint64_t all = 0;
  for (const replica_stats& r : s.queue_stats().replicas)
    all += r.pieces;
  return all;
}

/// Returns the error of a run that has failed; one without a text if it has not.
error error_of_run(std::future<run_result>& run) {
  try {
    run.get();
  } catch (const error& e) {
    return e;
  }
  return {errc::internal, ""};
}

const std::vector<strategy> strategies{strategy::data_parallel, strategy::model_parallel, strategy::pipeline,
                                       strategy::work_stealing};

} // namespace

TEST_CASE("a batch gives the same rows under every strategy", "[strategy][C1][C2][C3][C4]") {
  engine e = references(3);
  const session alone = e.load(rows_apart());
  for (const strategy how : strategies)
    for (const stream_options& stream : {stream_options{}, stream_options{.micro_batch = 2, .depth = 3}}) {
      const session s = e.load(rows_apart(), with(how, stream));
      for (const int64_t rows : {1, 2, 3, 7, 64, 131}) {
        const tensor x = rows_of_x(rows, static_cast<uint64_t>(rows));
        INFO(static_cast<int>(how) << ", " << rows << " rows, micro-batch " << stream.micro_batch);
        CHECK(same(y_of(s.run({{"x", x}})), y_of(alone.run({{"x", x}}))));
      }
      CHECK(s.queue_stats().rows == "batch");
    }
}

TEST_CASE("data-parallel shares go to all replicas", "[strategy][C1][C6]") {
  engine e = references(2);
  const session s = e.load(rows_apart(), with(strategy::data_parallel, {.shares = share_rule::equal}));
  s.run({{"x", rows_of_x(10, 1)}});
  const stream_stats stats = s.queue_stats();
  REQUIRE(stats.replicas.size() == 2);
  CHECK(stats.replicas[0].rows == 5);
  CHECK(stats.replicas[1].rows == 5);
  CHECK(stats.replicas[0].devices == std::vector<std::string>{"ref0"});
  CHECK(stats.answered == 1);
  CHECK(stats.failed == 0);
}

TEST_CASE("requests whose rows depend on each other run whole", "[strategy][C1]") {
  engine e = references(2);
  const session alone = e.load(rows_mixed());
  for (const strategy how : strategies) {
    const session s = e.load(rows_mixed(), with(how));
    std::vector<std::future<run_result>> runs;
    for (uint64_t i = 0; i < 8; ++i)
      runs.push_back(s.submit({{"x", rows_of_x(9, i)}}));
    for (uint64_t i = 0; i < 8; ++i)
      CHECK(same(y_of(runs[i].get()), y_of(alone.run({{"x", rows_of_x(9, i)}}))));
    CHECK_THAT(s.queue_stats().whole_because, Contains("ReduceMean"));
    CHECK(pieces_of(s) == 8);
    // Cutting that was asked for is refused, and the node is named.
    const error why = thrown_by([&] { e.load(rows_mixed(), with(how, {.micro_batch = 2})); });
    CHECK(why.code() == errc::unsupported);
    CHECK_THAT(why.what(), Contains("ReduceMean_mean"));
  }
}

TEST_CASE("requests that wait are joined up to a batch", "[strategy][C1]") {
  engine e = references(1);
  const session alone = e.load(rows_apart());
  const session s = e.load(rows_apart(), {.stream = {.max_batch = 8, .max_delay = 50ms}});
  std::vector<std::future<run_result>> runs;
  for (uint64_t i = 0; i < 16; ++i)
    runs.push_back(s.submit({{"x", rows_of_x(1, i)}}));
  for (uint64_t i = 0; i < 16; ++i)
    CHECK(same(y_of(runs[i].get()), y_of(alone.run({{"x", rows_of_x(1, i)}}))));
  CHECK(pieces_of(s) < 16);
}

TEST_CASE("answers come in the order of submission if that is asked for", "[strategy][C1]") {
  engine e = references(3);
  const session s = e.load(rows_apart(), with(strategy::work_stealing, {.ordered = true}));
  std::mutex mutex;
  std::vector<int> order;
  std::promise<void> all;
  constexpr int count = 200;
  for (int i = 0; i < count; ++i)
    s.submit({{"x", rows_of_x(1 + i % 40, static_cast<uint64_t>(i))}}, {}, [&, i](const run_outcome&) {
      const std::lock_guard lock(mutex);
      order.push_back(i);
      if (order.size() == count)
        all.set_value();
    });
  REQUIRE(all.get_future().wait_for(60s) == std::future_status::ready);
  CHECK(std::is_sorted(order.begin(), order.end()));
}

TEST_CASE("options that no stream can have are refused when the model is loaded", "[strategy]") {
  engine e = references(1);
  const auto refused = [&](const stream_options& stream) {
    const error why = thrown_by([&] { e.load(rows_apart(), {.stream = stream}); });
    CHECK(why.code() == errc::invalid_argument);
    return std::string(why.what());
  };
  CHECK_THAT(refused({.queue_limit = 0}), Contains("queue_limit"));
  CHECK_THAT(refused({.micro_batch = -1}), Contains("micro_batch"));
  CHECK_THAT(refused({.max_batch = -1}), Contains("max_batch"));
  CHECK_THAT(refused({.max_delay = -1us}), Contains("max_delay"));
  const session patient =
      e.load(rows_apart(), {.stream = {.max_batch = 1, .max_delay = std::chrono::microseconds::max()}});
  CHECK_NOTHROW(patient.submit({{"x", rows_of_x(1, 1)}}).get()); // a full batch does not wait
  CHECK(thrown_by([&] {
          patient.submit({{"x", rows_of_x(1, 1)}}, {.timeout = -1ms}).get();
        }).code() == errc::invalid_argument);
}

TEST_CASE("a full queue lets submitters wait, but no callback", "[strategy][C6]") {
  engine e = references(1, {.delay = 20ms});
  const session s = e.load(rows_apart(), {.stream = {.queue_limit = 2}});
  const named_tensors x{{"x", rows_of_x(1, 1)}};
  auto first = s.submit(x), second = s.submit(x);
  const error late = thrown_by([&] { s.submit(x, {.timeout = 1ms}).get(); });
  CHECK(late.code() == errc::timeout);
  CHECK_THAT(late.what(), Contains("2 others"));
  CHECK_NOTHROW(s.submit(x).get()); // waits for a place
  std::promise<bool> inner;
  s.submit(x, {}, [&](const run_outcome&) {
    std::vector<std::future<run_result>> more;
    for (int i = 0; i < 5; ++i)
      more.push_back(s.submit(x, {.timeout = 60s}));
    bool good = true;
    for (auto& each : more)
      good = good && each.get().outputs.size() == 1;
    inner.set_value(good);
  });
  std::future<bool> done = inner.get_future();
  REQUIRE(done.wait_for(60s) == std::future_status::ready);
  CHECK(done.get());
}

TEST_CASE("deadlines and cancellation end requests of a stream, wherever they are", "[strategy][C6]") {
  engine e = references(1, {.delay = 30ms});
  const session s = e.load(rows_apart(), with(strategy::work_stealing));
  const named_tensors x{{"x", rows_of_x(1, 1)}};
  std::stop_source stop;
  std::vector<std::future<run_result>> usual;
  for (int i = 0; i < 4; ++i)
    usual.push_back(s.submit(x));
  auto late = s.submit(x, {.timeout = 5ms});
  auto cancelled = s.submit(x, {.cancel = stop.get_token()});
  stop.request_stop();
  CHECK(error_of_run(late).code() == errc::timeout);
  CHECK(error_of_run(cancelled).code() == errc::cancelled);
  for (auto& each : usual)
    CHECK_NOTHROW(each.get());
  CHECK(error_of_run(usual.emplace_back(s.submit(x, {.cancel = stop.get_token()}))).code() == errc::cancelled);
}

TEST_CASE("a bad request of a batch hurts no other", "[strategy][C11]") {
  engine e = references(2);
  const session s = e.load(rows_apart(), with(strategy::work_stealing, {.max_batch = 8, .max_delay = 20ms}));
  auto good = s.submit({{"x", rows_of_x(1, 1)}});
  auto wrong_shape = s.submit({{"x", random_tensor({1, 5}, 1)}});
  auto missing = s.submit({});
  CHECK_NOTHROW(good.get());
  CHECK(error_of_run(wrong_shape).code() == errc::invalid_input);
  CHECK(error_of_run(missing).code() == errc::invalid_input);
}

TEST_CASE("a stream loses nothing with a device, and uses one that joins", "[strategy][C11]") {
  engine e = references(2, {.delay = 2ms});
  const session alone = e.load(rows_apart(), {.devices = {"ref1"}});
  const session s = e.load(rows_apart(), with(strategy::work_stealing, {.micro_batch = 4}));
  std::vector<std::future<run_result>> runs;
  const auto submit = [&](uint64_t from, uint64_t to) {
    for (uint64_t i = from; i < to; ++i)
      runs.push_back(s.submit({{"x", rows_of_x(13, i)}}));
  };
  submit(0, 20);
  lose_devices(
      e, [](const device_info& d) { return d.name == "ref0"; }, "the test took it");
  submit(20, 40);
  for (uint64_t i = 0; i < runs.size(); ++i)
    CHECK(same(y_of(runs[i].get()), y_of(alone.run({{"x", rows_of_x(13, i)}}))));
  const stream_stats after_loss = s.queue_stats();
  CHECK_FALSE(after_loss.replicas[0].living);
  CHECK_THAT(after_loss.replicas[0].why_not, Contains("the test took it"));
  CHECK(after_loss.replicas[1].living);
  add_devices(e, {reference("ref0")});
  runs.clear();
  submit(0, 40);
  for (auto& each : runs)
    CHECK_NOTHROW(each.get());
  const stream_stats joined = s.queue_stats();
  CHECK(joined.replicas[0].living);
  CHECK(joined.replicas[0].pieces > after_loss.replicas[0].pieces);
}

TEST_CASE("if no replica is left, requests fail with the loss", "[strategy][C11]") {
  engine e = references(2, {.delay = 5ms});
  const session s = e.load(rows_apart(), with(strategy::data_parallel));
  auto in_flight = s.submit({{"x", rows_of_x(8, 1)}});
  lose_devices(
      e, [](const device_info&) { return true; }, "the test took it");
  const error why = error_of_run(in_flight);
  CHECK(why.code() == errc::device_lost);
  CHECK_THAT(why.what(), Contains("the test took it"));
  CHECK(thrown_by([&] { s.run({{"x", rows_of_x(8, 1)}}); }).code() == errc::device_lost);
}

TEST_CASE("requests outlive their session, and end with their engine", "[strategy]") {
  auto e = std::make_unique<engine>(references(2, {.delay = 5ms}));
  std::vector<std::future<run_result>> runs;
  {
    const session s = e->load(rows_apart(), with(strategy::data_parallel));
    for (int i = 0; i < 10; ++i)
      runs.push_back(s.submit({{"x", rows_of_x(4, 1)}}));
  }
  for (auto& each : runs)
    CHECK_NOTHROW(each.get());
  const session left = e->load(rows_apart(), with(strategy::data_parallel));
  runs.clear();
  for (int i = 0; i < 50; ++i)
    runs.push_back(left.submit({{"x", rows_of_x(4, 1)}}));
  e.reset();
  for (auto& each : runs) // whichever ended before is right
    if (const error why = error_of_run(each); *why.what())
      CHECK(why.code() == errc::cancelled);
  CHECK(thrown_by([&] { left.run({{"x", rows_of_x(4, 1)}}); }).code() == errc::cancelled);
}

TEST_CASE("bound sessions stay on their replica, each in turn", "[strategy][C1]") {
  graph_builder b;
  b.output(b.op("Add", {b.input("state", {2}), b.input("x", {2})}, {}, "next"));
  engine e = references(2);
  const session s = e.load(b.g, with(strategy::data_parallel));
  std::vector<bound_session> bound{s.bind({{"next", "state"}}), s.bind({{"next", "state"}})};
  for (int step = 0; step < 3; ++step)
    for (bound_session& each : bound) {
      named_tensors inputs{{"x", floats({2}, {1, 2})}};
      if (step == 0)
        inputs["state"] = floats({2}, {0, 0});
      each.run(inputs);
    }
  for (const bound_session& each : bound)
    CHECK(each.fetch("next").values<float>()[1] == 6);
  const std::vector<device_stats> stats = e.stats();
  CHECK(stats[0].chunks == 3);
  CHECK(stats[1].chunks == 3);
}

TEST_CASE("a session may be limited to some of the devices", "[engine]") {
  engine e = references(3);
  const session s =
      e.load(rows_apart(), {.policy = placement_policy::round_robin, .devices = {"ref2", "ref1"}, .fuse = false});
  s.run({{"x", rows_of_x(3, 1)}});
  CHECK(e.stats()[0].chunks == 0);
  CHECK(e.stats()[1].chunks > 0);
  CHECK(e.stats()[2].chunks > 0);
  const error why = thrown_by([&] { e.load(rows_apart(), {.devices = {"ref3"}}); });
  CHECK(why.code() == errc::invalid_argument);
  CHECK_THAT(why.what(), Contains("'ref3'"));
  lose_devices(
      e, [](const device_info& d) { return d.name != "ref0"; }, "the test took it");
  CHECK(thrown_by([&] { s.run({{"x", rows_of_x(3, 1)}}); }).code() == errc::device_lost);
}

TEST_CASE("plans of a strategy name its replicas and pieces", "[strategy][C10]") {
  engine e = references(2);
  const named_tensors x{{"x", rows_of_x(12, 1)}};
  const std::string text = e.load(rows_apart(), with(strategy::data_parallel)).plan(x);
  CHECK_THAT(text, Contains("data-parallel, replica 0: ref0") && Contains("replica 1: ref1") &&
                       Contains("rows of 'batch' are independent: pieces of 6"));
  CHECK_THAT(e.load(rows_mixed(), with(strategy::work_stealing)).plan(x), Contains("requests run whole"));
  const session piped = e.load(rows_apart(), with(strategy::pipeline));
  CHECK_THAT(piped.plan(x), Contains("strategy pipeline, replica 0: ref0, ref1"));
  CHECK(piped.plan(x, plan_format::json).front() == '{'); // one that can be loaded again
}
